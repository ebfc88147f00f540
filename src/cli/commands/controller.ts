import type { ApiClient } from '../../api/client.ts';
import type { LeftoverView } from '../../api/contract.ts';
import { describeMachine } from '../../domain/remote-controller-info.ts';
import { SvcError, messageOf } from '../../shared/errors.ts';
import { identifyProcess } from '../../shared/system/process-identity.ts';
import type { RemoteController, KubernetesOperations } from '../connection/controller-connection.ts';
import { refuseWithServices, waitUntilControllerGone, retireController } from '../connection/controller-process.ts';
import type { CommandContext } from '../command.ts';
import { logCommand } from './controller-status.ts';
import { describeLeftover } from '../listing/service-listing.ts';

interface JsonArgs {
  readonly json: boolean;
}

interface StartArgs extends JsonArgs {
  readonly foreground: boolean;
}

/** `svc controller start`: starts the controller unless it runs. With `foreground` this process becomes it. */
export async function controllerStart(args: StartArgs, { connection, ui, paths }: CommandContext): Promise<void> {
  if (args.foreground) {
    // A service manager must not restart this command again and again.
    if ((await connection.remoteController()) !== undefined)
      return ui.say('The controller is on another machine: nothing is started here.');
    return (await import('../connection/daemon.ts')).becomeController(paths);
  }
  const api = await connection.client();
  const health = await api.call('health');
  if (args.json) return ui.json(health);
  const cluster = await (await connection.remoteController())?.inCluster?.status();
  if (cluster === undefined) return ui.say(`The controller runs as process ${health.pid}. Its log is ${health.log}`);
  return ui.say(`The controller runs in ${cluster.context}/${cluster.namespace}. To read its log: ${logCommand(cluster)}`);
}

interface StopArgs {
  readonly keepServices: boolean;
  readonly json: boolean;
}

/** `svc controller stop`: ends the controller's process and waits until it has ended. Succeeds when none runs. */
export async function controllerStop(args: StopArgs, context: CommandContext): Promise<void> {
  const { connection, ui } = context;
  const api = await connection.running();
  if (api === undefined) {
    if (args.json) ui.json({ stopped: false });
    else ui.say('The controller does not run.');
    return undefined;
  }
  const remoteController = await connection.remoteController();
  if (remoteController?.inCluster !== undefined) return stopInCluster(args, remoteController, remoteController.inCluster, api, context);
  const { pid } = await api.call('health');
  // A remote process cannot be watched from this machine. It counts as ended when it no longer answers.
  const daemon = remoteController === undefined ? identifyProcess(pid) : undefined;
  await api.call('stopController', { body: { keepServices: args.keepServices } });
  if (daemon !== undefined) await waitUntilControllerGone(daemon, context);
  if (remoteController !== undefined) await waitUntilSilent(remoteController, context);
  if (args.json) ui.json({ stopped: true });
  else if (remoteController !== undefined)
    ui.say('The controller has stopped; its machine is still there. To give it back: svc controller down');
  else ui.say(args.keepServices ? 'The controller has stopped; services go on.' : 'The controller has stopped.');
  return undefined;
}

/** Kubernetes restarts a process that ends, so the pods must be removed. */
async function stopInCluster(
  args: StopArgs,
  remoteController: RemoteController,
  inCluster: KubernetesOperations,
  api: ApiClient,
  context: CommandContext,
): Promise<void> {
  const { ui } = context;
  if (!args.keepServices) await refuseWithServices(api);
  await inCluster.stop();
  await waitUntilSilent(remoteController, context);
  if (args.json) ui.json({ stopped: true });
  else ui.say('The controller has stopped; its balancers and its objects are still there. To remove them: svc controller down');
}

const silentTimeoutMs = 30_000;
const pollMs = 250;

async function waitUntilSilent(remoteController: RemoteController, { clock, signal }: CommandContext): Promise<void> {
  const deadline = clock.monotonic() + silentTimeoutMs;
  while ((await remoteController.running()) !== undefined) {
    if (clock.monotonic() > deadline)
      throw new SvcError('SVC_CONTROLLER_UNREACHABLE', 'The controller was asked to stop and still answers.');
    await clock.sleep(pollMs, signal);
    signal.throwIfAborted();
  }
}

/** `svc controller restart`: starts the controller with the installed code. That renews the services' processes. */
export async function controllerRestart(args: JsonArgs, context: CommandContext): Promise<void> {
  const { connection, ui } = context;
  const remoteController = await connection.remoteController();
  if (remoteController?.inCluster !== undefined) return restartInCluster(args, remoteController.inCluster, context);
  if (remoteController !== undefined) return controllerUpgrade(args, context);
  const running = await connection.running();
  if (running !== undefined) await retireController((await running.call('health')).pid, context);
  const api = await connection.client();
  const health = await api.call('health');
  if (args.json) ui.json(health);
  else ui.say(`The controller runs as process ${health.pid}, version ${health.version}. Its log is ${health.log}`);
  return undefined;
}

/** Restarts one pod after the other: where a role has two pods, one always works. */
async function restartInCluster(args: JsonArgs, inCluster: KubernetesOperations, { connection, ui }: CommandContext): Promise<void> {
  const progress = ui.progress();
  try {
    await inCluster.restart((text) => progress.now(text));
    const health = await (await connection.client((text) => progress.now(text))).call('health');
    progress.stop();
    if (args.json) ui.json(health);
    else ui.say(`All pods of the controller were restarted (version ${health.version}).`);
  } finally {
    progress.stop();
  }
}

/** `svc controller upgrade`: copies this program to the controller's machine and replaces the running one there. */
export async function controllerUpgrade(args: JsonArgs, { connection, ui }: CommandContext): Promise<void> {
  const remoteController = await connection.remoteController();
  if (remoteController === undefined) {
    if (args.json) ui.json({ upgraded: false, controller: null });
    else ui.say('The controller is on this machine: the first command of a newer version replaces it.');
    return;
  }
  const progress = ui.progress();
  try {
    const { isNew } = await remoteController.upgrade((text) => progress.now(text));
    const health = await (await remoteController.client((text) => progress.now(text))).call('health');
    progress.stop();
    if (args.json) ui.json({ upgraded: isNew, controller: health });
    else if (isNew) ui.say(`The controller runs version ${health.version} now.`);
    else if (remoteController.inCluster !== undefined) ui.say(`The controller is as config.yaml says (version ${health.version}).`);
    else ui.say(`The controller has this program already (version ${health.version}); it was restarted.`);
  } finally {
    progress.stop();
  }
}

interface DownArgs {
  readonly yes: boolean;
  readonly purge: boolean;
  readonly json: boolean;
}

/** `svc controller down`: terminates the controller's machine, unless services or clusters still need it. */
export async function controllerDown(args: DownArgs, { connection, ui }: CommandContext): Promise<void> {
  const remoteController = await connection.remoteController();
  const record = remoteController?.record();
  if (remoteController === undefined || record === undefined) {
    if (args.json) ui.json({ removed: false });
    else ui.say('There is no controller on another machine. To stop the one on this machine: svc controller stop');
    return;
  }
  if (!args.purge && record.machineId !== null) await refuseWhileNeeded(remoteController);
  const where = record.machine === null ? '' : ` at ${describeMachine(record.machine)}`;
  const { cluster: site } = record;
  const inCluster = site === undefined ? undefined : `the controller and its balancers from ${site.context}/${site.namespace}`;
  const more = args.purge ? ' and every machine it launched' : '';
  const question = inCluster === undefined ? `Give back the machine of the controller${where}${more}?` : `Remove ${inCluster}${more}?`;
  if (!(await ui.confirm(question, args.yes))) throw new SvcError('SVC_ABORTED', 'Nothing was terminated.');
  const progress = ui.progress();
  let left: string | undefined;
  try {
    left = await remoteController.remove(args.purge, (text) => progress.now(text));
  } finally {
    progress.stop();
  }
  if (args.json) return ui.json({ removed: true, left: left ?? null });
  if (left !== undefined) {
    ui.say(`The machine of the controller, ${left}, does not answer and was forgotten; everything else that it launched was removed.`);
    return ui.say(
      'If its host comes back, the controller there goes on with its services: end it there, and remove its folder below ~/.svc/machines.',
    );
  }
  ui.say(site === undefined ? `The machine of the controller${where} was terminated.` : `Removed ${inCluster}.`);
}

/** A stopped machine had no services when it was stopped. A controller that does not answer may have services. */
async function refuseWhileNeeded(remoteController: RemoteController): Promise<void> {
  const status = await remoteController.machine();
  if (status?.state === 'stopped') {
    if (remoteController.inCluster === undefined) return;
    throw new SvcError('SVC_CONTROLLER_UNREACHABLE', 'The controller is stopped, so whether it still has services cannot be asked.', {
      hint: 'Start it first: svc controller start. To remove it with everything it launched: svc controller down --purge',
    });
  }
  const api = await remoteController.running().catch((error: unknown) => {
    throw new SvcError('SVC_CONTROLLER_UNREACHABLE', `Whether the controller still has services cannot be asked: ${messageOf(error)}`, {
      hint: 'Try again. To remove it with everything it launched: svc controller down --purge',
    });
  });
  // The machine was never set up, or was stopped by hand without services: nothing would be lost.
  if (api === undefined) return;
  await refuseWithServices(api);
}

interface SweepArgs {
  readonly yes: boolean;
  readonly json: boolean;
}

/** `svc controller sweep`: asks, then removes resources of services and clusters that the database does not know. */
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
