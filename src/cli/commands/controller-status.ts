import { exitCodes } from '../../shared/error-codes.ts';
import type { RouteReply } from '../../api/contract.ts';
import type { Clock } from '../../shared/clock.ts';
import { logCommand, renderCluster, row } from '../cluster-status-listing.ts';
import type { CommandContext } from '../context.ts';
import { describePlace } from '../../domain/controller-host.ts';
import type { MachineStatus } from '../../providers/provider.ts';
import { formatDuration } from '../format-time.ts';
import { differencesHere, type ControllerDifference } from '../../launcher/controller-differences.ts';
import { SvcError } from '../../shared/errors.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { loadConfig } from '../../spec/load-config.ts';
import { oneLine } from '../display-text.ts';
import type { Elsewhere } from '../elsewhere-connection.ts';

interface StatusArgs {
  readonly json: boolean;
}

/** `svc controller status`: never starts it. The exit code tells whether it runs. */
export async function controllerStatus(args: StatusArgs, { connection, ui, clock, paths }: CommandContext): Promise<number> {
  const elsewhere = await connection.elsewhere();
  const record = elsewhere?.record();
  const cluster = await elsewhere?.inCluster?.status();
  const machine = cluster === undefined ? await elsewhere?.machine() : undefined;
  // Whoever asks how it is does not wait until it is well.
  const api = cluster === undefined ? await connection.running() : await elsewhere?.inCluster?.leading();
  const health = await api?.call('health');
  const place = record?.place ?? null;
  const differences = await differencesOf(elsewhere, health !== undefined, paths);
  if (cluster !== undefined) {
    if (args.json) ui.json({ running: health !== undefined, controller: health ?? null, cluster, differences });
    else for (const line of renderCluster(cluster)) ui.print(line);
    if (!args.json && health !== undefined) for (const line of healthRows(health, clock, logCommand(cluster))) ui.print(line);
  } else if (args.json) {
    const { machineId = null, publicHost = null } = record ?? {};
    const where = place === null ? null : { ...place, machineId, publicHost, state: machine?.state ?? null };
    ui.json({ running: health !== undefined, log: paths.controllerLog, controller: health ?? null, machine: where, differences });
  } else if (health === undefined && place !== null) {
    ui.print(`The controller does not run. Its machine at ${describePlace(place)} is ${machineState(machine)}.`);
  } else if (health === undefined) ui.print(`The controller does not run. Its log is ${paths.controllerLog}`);
  else {
    if (place !== null) ui.print(row('Machine', `${describePlace(place)}, ${record?.publicHost ?? 'no address'}`));
    for (const line of healthRows(health, clock, health.log)) ui.print(line);
  }
  if (!args.json) for (const line of differences.flatMap(differenceRows)) ui.print(ui.asTyped(line));
  return health === undefined ? exitCodes['not-found'] : 0;
}

/** Where the controller that there is contradicts the configuration. */
async function differencesOf(
  elsewhere: Elsewhere | undefined,
  isRunning: boolean,
  paths: HomePaths,
): Promise<readonly ControllerDifference[]> {
  if (elsewhere === undefined && !isRunning) return [];
  try {
    if (elsewhere !== undefined) return await elsewhere.differences();
    return await differencesHere(await loadConfig(paths.config));
  } catch (error) {
    // How it is, is told whatever the configuration is like.
    if (!(error instanceof SvcError) || error.code !== 'SVC_INVALID_CONFIG') throw error;
    return [{ what: `It cannot be compared with config.yaml: ${error.message}`, remedy: error.hint }];
  }
}

function differenceRows({ what, remedy }: ControllerDifference): readonly string[] {
  return [row('Differs', oneLine(what)), row('', oneLine(remedy))];
}

function healthRows(health: RouteReply<'health'>, clock: Clock, log: string): readonly string[] {
  const uptime = formatDuration((clock.now() - Date.parse(health.startedAt)) / 1_000);
  return [
    row('Process', String(health.pid)),
    row('Version', health.version),
    row('Uptime', uptime),
    row('Services', `${health.services} of at most ${health.serviceLimit}`),
    row('Clusters', String(health.clusters)),
    row('Stops by itself', health.idleStopSeconds === null ? 'not while it is needed' : `in ${formatDuration(health.idleStopSeconds)}`),
    row('Log', log),
  ];
}

function machineState(status: MachineStatus | undefined): string {
  if (status === undefined) return 'not there yet';
  if (status.state === 'stopped') return 'stopped, and the next service starts it';
  return status.state === 'running' ? 'on' : status.state;
}
