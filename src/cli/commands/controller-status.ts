import type { RouteReply } from '../../api/contract.ts';
import { describeMachine } from '../../domain/remote-controller-info.ts';
import { localControllerDifferences, type ControllerDifference } from '../../launcher/controller-differences.ts';
import { outsideHint, type KubernetesControllerStatus, type PodLine } from '../../launcher/high-availability/status.ts';
import type { MachineStatus } from '../../providers/provider.ts';
import type { Clock } from '../../shared/clock.ts';
import { exitCodes } from '../../shared/error-codes.ts';
import { SvcError } from '../../shared/errors.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { loadConfig } from '../../spec/load-config.ts';
import type { RemoteController } from '../connection/controller-connection.ts';
import type { CommandContext } from '../command.ts';
import { bootStatus } from './controller-install.ts';
import { oneLine } from '../listing/display-text.ts';
import { formatDuration } from '../listing/format-values.ts';

interface StatusArgs {
  readonly json: boolean;
}

/** `svc controller status`: never starts the controller. The exit code reports whether it runs. */
export async function controllerStatus(args: StatusArgs, context: CommandContext): Promise<number> {
  const { connection, ui, clock, paths } = context;
  const remoteController = await connection.remoteController();
  const record = remoteController?.record();
  const clusterStatus = await remoteController?.inCluster?.status();
  const machine = clusterStatus === undefined ? await remoteController?.machine() : undefined;
  // A status command reports the current state. It does not wait until the controller is healthy.
  const api = clusterStatus === undefined ? await connection.running() : await remoteController?.inCluster?.leading();
  const health = await api?.call('health');
  const controllerMachine = record?.machine ?? null;
  const differences = await differencesOf(remoteController, health !== undefined, paths);
  const boot = remoteController === undefined ? await bootStatus(context) : undefined;
  if (clusterStatus !== undefined) {
    if (args.json) ui.json({ running: health !== undefined, controller: health ?? null, cluster: clusterStatus, differences });
    else for (const line of renderKubernetesController(clusterStatus)) ui.print(line);
    if (!args.json && health !== undefined) for (const line of healthRows(health, clock, logCommand(clusterStatus))) ui.print(line);
  } else if (args.json) {
    const { machineId = null, publicHost = null } = record ?? {};
    const where = controllerMachine === null ? null : { ...controllerMachine, machineId, publicHost, state: machine?.state ?? null };
    ui.json({
      running: health !== undefined,
      log: paths.controllerLog,
      controller: health ?? null,
      machine: where,
      boot: boot?.entry ?? null,
      differences,
    });
  } else if (health === undefined && controllerMachine !== null) {
    ui.print(`The controller does not run. Its machine at ${describeMachine(controllerMachine)} is ${machineState(machine)}.`);
  } else if (health === undefined) ui.print(`The controller does not run. Its log is ${paths.controllerLog}`);
  else {
    if (controllerMachine !== null)
      ui.print(row('Machine', `${describeMachine(controllerMachine)}, ${record?.publicHost ?? 'no address'}`));
    for (const line of healthRows(health, clock, health.log)) ui.print(line);
    for (const line of otherClientRows(controllerMachine !== null, paths)) ui.print(ui.asTyped(line));
  }
  if (!args.json && boot !== undefined) ui.print(ui.asTyped(row('After a reboot', boot.text)));
  if (!args.json) for (const line of differences.flatMap(differenceRows)) ui.print(ui.asTyped(line));
  return health === undefined ? exitCodes['not-found'] : 0;
}

async function differencesOf(
  remoteController: RemoteController | undefined,
  isRunning: boolean,
  paths: HomePaths,
): Promise<readonly ControllerDifference[]> {
  if (remoteController === undefined && !isRunning) return [];
  try {
    if (remoteController !== undefined) return await remoteController.differences();
    return await localControllerDifferences(await loadConfig(paths.config));
  } catch (error) {
    // The status is shown even when the configuration is invalid.
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

/** How commands of other users or on other machines use the same controller. */
function otherClientRows(isRemote: boolean, { home }: HomePaths): readonly string[] {
  if (!isRemote)
    return [row('Other clients', `this user's commands with SVC_HOME=${home}; from another machine: ssh USER@MACHINE svc serve status`)];
  return [
    row('Other clients', `copy controller.json, config.yaml, ssh_pools.yaml and ssh/ (it has keys; without ssh/ways) of ${home}`),
    row('', 'into SVC_HOME of the other user or machine (mode 0700); see docs/controller.md'),
  ];
}

function machineState(status: MachineStatus | undefined): string {
  if (status === undefined) return 'not there yet';
  if (status.state === 'stopped') return 'stopped, and the next service starts it';
  return status.state === 'running' ? 'on' : status.state;
}

function row(label: string, value: string): string {
  return `${label.padEnd(17)}${value}`;
}

function renderKubernetesController(status: KubernetesControllerStatus): readonly string[] {
  const { context, namespace, state, leader, database, controllers, balancers, checkers, endpoints } = status;
  const hint = outsideHint(status, endpoints.type);
  return [
    row('Cluster', `${context}, namespace ${namespace}${state === 'running' ? '' : ` (${describeState(state)})`}`),
    row('Leader', leader === null ? 'none at the moment' : `${leader.pod} (term ${leader.term})`),
    row('State', database === 'sqlite' ? 'SQLite on a volume' : 'PostgreSQL'),
    ...podRows('Controllers', controllers),
    ...podRows('Balancers', balancers),
    ...podRows('Health checkers', checkers),
    row('Endpoints', `${endpoints.host ?? 'no address'} (${endpoints.type})`),
    ...(hint === undefined ? [] : [row('', `from outside of the cluster: ${hint}`)]),
  ];
}

/** The command that shows a controller's log, which Kubernetes has. */
export function logCommand({ context, namespace, leader }: Pick<KubernetesControllerStatus, 'context' | 'namespace' | 'leader'>): string {
  return `kubectl --context ${context} -n ${namespace} logs ${leader?.pod ?? '-l svc-role=controller'}`;
}

function describeState(state: 'absent' | 'stopped'): string {
  return state === 'absent' ? 'its objects are gone; svc controller upgrade makes them again' : 'stopped; svc controller start starts it';
}

function podRows(label: string, pods: readonly PodLine[]): readonly string[] {
  const ready = pods.filter((pod) => pod.ready).length;
  return [row(label, `${ready} of ${pods.length} ready`), ...pods.map((pod) => row('', describePod(pod)))];
}

function describePod({ name, node, ready, trouble }: PodLine): string {
  const where = node === null ? 'on no node yet' : `on ${node}`;
  const how = trouble === null ? (ready ? 'ready' : 'coming up') : oneLine(trouble);
  return `${name} ${where}: ${how}`;
}
