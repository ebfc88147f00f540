import type { LeftoverView } from '../../api/contract.ts';
import { SvcError } from '../../shared/errors.ts';
import type { CommandContext } from '../context.ts';
import { describeLeftover } from '../listing/status-lines.ts';

interface SweepArgs {
  readonly yes: boolean;
  readonly json: boolean;
}

/**
 * `svc controller sweep`: asks, then removes the resources of services and clusters that the state database does not
 * know.
 */
export async function controllerSweep(args: SweepArgs, { connection, ui }: CommandContext): Promise<void> {
  const api = await connection.existing();
  const leftovers = api === undefined ? [] : ((await api.call('listServices')).leftovers ?? []);
  if (api === undefined || leftovers.length === 0) {
    if (args.json) ui.json({ removed: [], failed: [] });
    else ui.say('Nothing is left over: the state database knows every service and cluster of this SVC_HOME.');
    return;
  }
  for (const leftover of leftovers) ui.say(describeLeftover(leftover));
  if (!(await ui.confirm('End their processes, destroy their machines and delete their files?', args.yes)))
    throw new SvcError('SVC_ABORTED', 'Nothing was removed.');
  const { removed, failed } = await api.call('sweep', { timeoutMs: sweepTimeoutMs });
  if (args.json) ui.json({ removed, failed });
  else if (removed.length > 0) ui.say(`Removed ${removed.map(nameOf).join(', ')}.`);
  if (failed.length === 0) return;
  const reasons = failed.map(({ leftover, reason }) => `${nameOf(leftover)} could not be removed completely: ${reason}`);
  throw new SvcError('SVC_CLEANUP_FAILED', reasons.join('\n'), {
    hint: 'The controller keeps it on its list. Repair the cause, then run it again: svc controller sweep',
  });
}

/** Cloud machines take minutes to terminate. */
const sweepTimeoutMs = 900_000;

const nameOf = ({ name, key }: LeftoverView): string => (name === null ? key : `'${name}' (${key})`);
