import type { ApiClient } from '../../api/client.ts';
import { SvcError } from '../../shared/errors.ts';
import { identifyProcess } from '../../shared/system/process-identity.ts';
import type { CommandContext } from '../context.ts';
import { refuseWithServices, waitUntilControllerGone } from '../connection/controller-process.ts';
import type { RemoteController, KubernetesOperations } from '../connection/controller-connection.ts';

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
  // The process of a remote controller cannot be watched from this machine. It counts as ended when it no longer
  // answers.
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
