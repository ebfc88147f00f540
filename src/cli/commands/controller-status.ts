import { exitCodes } from '../../shared/error-codes.ts';
import type { CommandContext } from '../context.ts';
import { describePlace } from '../../domain/controller-host.ts';
import type { MachineStatus } from '../../providers/provider.ts';
import { formatDuration } from '../format-time.ts';

interface StatusArgs {
  readonly json: boolean;
}

/** `svc controller status`: never starts it. The exit code tells whether it runs. */
export async function controllerStatus(args: StatusArgs, { connection, ui, clock, paths }: CommandContext): Promise<number> {
  const elsewhere = await connection.elsewhere();
  const record = elsewhere?.record();
  const machine = await elsewhere?.machine();
  const api = await connection.running();
  const health = await api?.call('health');
  const place = record?.place ?? null;
  if (args.json) {
    const { machineId = null, publicHost = null } = record ?? {};
    const where = place === null ? null : { ...place, machineId, publicHost, state: machine?.state ?? null };
    ui.json({ running: health !== undefined, log: paths.controllerLog, controller: health ?? null, machine: where });
  } else if (health === undefined && place !== null) {
    ui.print(`The controller does not run. Its machine at ${describePlace(place)} is ${machineState(machine)}.`);
  } else if (health === undefined) ui.print(`The controller does not run. Its log is ${paths.controllerLog}`);
  else {
    const uptime = formatDuration((clock.now() - Date.parse(health.startedAt)) / 1_000);
    const rows: readonly (readonly [string, string])[] = [
      ...(place === null ? [] : ([['Machine', `${describePlace(place)}, ${record?.publicHost ?? 'no address'}`]] as const)),
      ['Process', String(health.pid)],
      ['Version', health.version],
      ['Uptime', uptime],
      ['Services', `${health.services} of at most ${health.serviceLimit}`],
      ['Clusters', String(health.clusters)],
      ['Stops by itself', health.idleStopSeconds === null ? 'not while it is needed' : `in ${formatDuration(health.idleStopSeconds)}`],
      ['Log', health.log],
    ];
    for (const [label, value] of rows) ui.print(`${label.padEnd(17)}${value}`);
  }
  return health === undefined ? exitCodes['not-found'] : 0;
}

function machineState(status: MachineStatus | undefined): string {
  if (status === undefined) return 'not there yet';
  if (status.state === 'stopped') return 'stopped, and the next service starts it';
  return status.state === 'running' ? 'on' : status.state;
}
