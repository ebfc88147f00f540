import { SvcError } from '../shared/errors.ts';
import type { CommandContext } from './context.ts';
import { waitUntilGone, type TerminatingItem } from './wait-until-gone.ts';
import { pickByName } from './name-patterns.ts';

/** Arguments of both `svc serve down` and `svc down`. */
export interface TerminateArgs {
  readonly names: readonly string[];
  readonly all: boolean;
  readonly purge: boolean;
  readonly wait: boolean | undefined;
  readonly yes: boolean;
  readonly json: boolean;
}

/** A kind of thing that can be terminated: services or clusters. */
interface Removable {
  readonly noun: 'service' | 'cluster';
  /** The command that lists them. `purgeCommand` forgets NAME. */
  readonly listCommand: string;
  readonly purgeCommand: string;
  readonly notFound: (name: string, known: readonly TerminatingItem[]) => SvcError;
  readonly list: () => Promise<readonly TerminatingItem[]>;
  readonly terminate: (name: string) => Promise<unknown>;
}

/**
 * Asks, then terminates the named items, and waits until they are gone unless `args` say otherwise. Throws for an
 * unknown name before it terminates anything.
 */
export async function terminateNamed(args: TerminateArgs, kind: Removable, context: CommandContext): Promise<void> {
  const { ui, signal } = context;
  if (args.all === args.names.length > 0) {
    throw new SvcError('SVC_USAGE', `Give either names of ${kind.noun}s or --all.`, { hint: `Run: ${kind.listCommand}` });
  }
  const all = await kind.list();
  const { found, missing } = pickByName(all, args.names);
  if (missing[0] !== undefined) throw kind.notFound(missing[0], all);
  const names = found.map(({ name }) => name);
  if (names.length === 0) ui.say(`No ${kind.noun} to terminate.`);
  else {
    const quoted = `${kind.noun}${names.length === 1 ? '' : 's'} ${names.map((name) => `'${name}'`).join(', ')}`;
    if (!(await ui.confirm(`Take down ${quoted}?`, args.yes))) throw new SvcError('SVC_ABORTED', 'Nothing was terminated.');
    for (const name of names) await kind.terminate(name);
    if (args.wait ?? true) await waitUntilGone(found, kind.list, kind.purgeCommand, context);
    else ui.say(`Taking down ${quoted}.`);
  }
  if (args.json && !signal.aborted) ui.json({ [`${kind.noun}s`]: names });
}
