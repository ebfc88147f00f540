import type { ServiceView } from '../../api/contract.ts';
import { SvcError } from '../../shared/errors.ts';
import type { CommandContext } from '../command.ts';
import { controllerName } from '../listing/cluster-listing.ts';
import { clusterNotFound, serviceNotFound, pickByName } from '../name-patterns.ts';

/** `svc down`: removes clusters, but not the controller. */
export async function down(args: TerminateArgs, context: CommandContext): Promise<void> {
  if (args.names.includes(controllerName)) {
    throw new SvcError('SVC_USAGE', 'The controller is not terminated like a cluster.', { hint: 'Run: svc controller stop' });
  }
  const api = await context.connection.existing();
  const clusters = {
    noun: 'cluster',
    listCommand: 'svc status',
    purgeCommand: 'svc down NAME --purge',
    notFound: clusterNotFound,
    list: async () =>
      api === undefined
        ? []
        : (await api.call('listClusters')).clusters.map(({ name, status, launchedAt, reason }) => ({
            name,
            status,
            createdAt: launchedAt,
            reason,
            left: status.toLowerCase(),
          })),
    terminate: async (name: string) => api?.call('terminateCluster', { params: { name }, query: { purge: args.purge } }),
  } as const;
  await terminateNamed(args, clusters, context);
}

/** `svc serve down`: terminates services with their replicas and machines. */
export async function serveDown(args: TerminateArgs, context: CommandContext): Promise<void> {
  const api = await context.connection.existing();
  const services = {
    noun: 'service',
    listCommand: 'svc serve status',
    purgeCommand: 'svc serve down NAME --purge',
    notFound: serviceNotFound,
    list: async () => (api === undefined ? [] : (await api.call('listServices')).services.map(asTerminating)),
    terminate: async (name: string) => api?.call('terminateService', { params: { name }, query: { purge: args.purge } }),
  } as const;
  await terminateNamed(args, services, context);
}

function asTerminating({ name, status, createdAt, reason, replicas }: ServiceView): TerminatingItem {
  const left = replicas.filter(({ endedAt }) => endedAt === null).length;
  return { name, status, createdAt, reason, left: `${left} replica${left === 1 ? '' : 's'} left` };
}

interface TerminateArgs {
  readonly names: readonly string[];
  readonly all: boolean;
  readonly purge: boolean;
  readonly wait: boolean | undefined;
  readonly yes: boolean;
  readonly json: boolean;
}

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
 * Asks, terminates, and waits until the items are gone unless `args` say otherwise. With unknown names it terminates the
 * others and then fails, so that a repeated command does the rest.
 */
async function terminateNamed(args: TerminateArgs, kind: Removable, context: CommandContext): Promise<void> {
  const { ui, signal } = context;
  if (args.all === args.names.length > 0) {
    throw new SvcError('SVC_USAGE', `Give either names of ${kind.noun}s or --all.`, { hint: `Run: ${kind.listCommand}` });
  }
  const all = await kind.list();
  const { found, missing } = pickByName(all, args.names);
  const unknown = missing[0] === undefined ? undefined : kind.notFound(missing[0], all);
  const names = found.map(({ name }) => name);
  if (unknown !== undefined && names.length === 0) throw unknown;
  if (names.length === 0) ui.say(`No ${kind.noun} to terminate.`);
  else {
    const quoted = `${kind.noun}${names.length === 1 ? '' : 's'} ${names.map((name) => `'${name}'`).join(', ')}`;
    if (!(await ui.confirm(`Take down ${quoted}?`, args.yes))) throw new SvcError('SVC_ABORTED', 'Nothing was terminated.');
    for (const name of names) await kind.terminate(name);
    if (args.wait ?? true) await waitUntilGone(found, kind.list, kind, context);
    else ui.say(`Taking down ${quoted}.`);
  }
  if (args.json && !signal.aborted) ui.json({ [`${kind.noun}s`]: names });
  if (unknown !== undefined) throw unknown;
}

const everyMs = 250;

interface TerminatingItem {
  readonly name: string;
  readonly status: string;
  /** Its remaining resources, for the progress line. */
  readonly left: string;
  /** Distinguishes successive services or clusters with the same name. */
  readonly createdAt: string;
  readonly reason: string | null;
}

/** States that only manual action ends. */
const stuckStates: readonly string[] = ['FAILED_CLEANUP'];

/**
 * Waits until no item is listed, and prints a line for each that disappears. Ctrl-C ends the wait, not the termination.
 * Throws when something could not be removed; the hint is `purgeCommand`, which forgets it.
 */
async function waitUntilGone(
  terminating: readonly TerminatingItem[],
  list: () => Promise<readonly TerminatingItem[]>,
  { purgeCommand, listCommand }: Pick<Removable, 'purgeCommand' | 'listCommand'>,
  context: CommandContext,
): Promise<void> {
  const { ui, clock, signal } = context;
  const progress = ui.progress();
  let waiting = terminating;
  try {
    while (!signal.aborted) {
      const now = await list();
      const still = waiting.flatMap((each) => now.filter(({ name, createdAt }) => name === each.name && createdAt === each.createdAt));
      for (const { name } of waiting) if (!still.some((each) => each.name === name)) progress.line(`${name} is gone.`);
      waiting = still;
      if (waiting.length === 0) return;
      const stuck = waiting.filter(({ status }) => stuckStates.includes(status));
      const [first] = stuck;
      // Waits for the others first: a stuck item says nothing about them.
      if (first !== undefined && stuck.length === waiting.length) throw stuckError(first, purgeCommand);
      progress.now(`Taking down ${waiting.map(({ name, left }) => `${name} (${left})`).join(', ')}`);
      await clock.sleep(everyMs, signal);
    }
    progress.stop();
    const left = waiting.map(({ name }) => `'${name}'`).join(', ');
    ui.say(`The command no longer waits; the controller goes on taking down ${left}. See: ${listCommand}`);
  } finally {
    progress.stop();
  }
}

function stuckError(stuck: TerminatingItem, purge: string): SvcError {
  const why = stuck.reason === null ? '' : `: ${stuck.reason}`;
  return new SvcError('SVC_CLEANUP_FAILED', `'${stuck.name}' could not be removed completely${why}`, {
    hint: `Correct the cause and run it again, or forget it: ${purge.replace('NAME', stuck.name)}`,
  });
}
