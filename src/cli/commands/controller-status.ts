import { exitCodes } from '../../shared/error-codes.ts';
import type { CommandContext } from '../context.ts';
import { formatDuration } from '../format-time.ts';

interface StatusArgs {
  readonly json: boolean;
}

/** `svc controller status`: never starts it. The exit code tells whether it runs. */
export async function controllerStatus(args: StatusArgs, { connection, ui, clock, paths }: CommandContext): Promise<number> {
  const api = await connection.running();
  const health = await api?.call('health');
  if (args.json) ui.json({ running: health !== undefined, log: paths.controllerLog, controller: health ?? null });
  else if (health === undefined) ui.print(`The controller does not run. Its log is ${paths.controllerLog}`);
  else {
    const uptime = formatDuration((clock.now() - Date.parse(health.startedAt)) / 1_000);
    const rows = [
      ['Process', String(health.pid)],
      ['Version', health.version],
      ['Uptime', uptime],
      ['Services', `${health.services} of at most ${health.serviceLimit}`],
      ['Clusters', String(health.clusters)],
      ['Stops by itself', health.idleStopSeconds === null ? 'not while it is needed' : `in ${formatDuration(health.idleStopSeconds)}`],
      ['Log', health.log],
    ] as const;
    for (const [label, value] of rows) ui.print(`${label.padEnd(17)}${value}`);
  }
  return health === undefined ? exitCodes['not-found'] : 0;
}
