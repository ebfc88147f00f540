import type { ApiClient } from '../../api/client.ts';
import { SvcError } from '../../shared/errors.ts';
import { identifyProcess } from '../../shared/process-identity.ts';
import type { InCluster } from '../cluster-connection.ts';
import type { CommandContext } from '../context.ts';
import { seeControllerGone } from '../controller-process.ts';
import { refuseWithServices } from '../refuse-with-services.ts';
import type { Elsewhere } from '../elsewhere-connection.ts';

interface StopArgs {
  readonly keepServices: boolean;
  readonly json: boolean;
}

/** `svc controller stop`: ends the controller's process and sees it gone. One that does not run is stopped already. */
export async function controllerStop(args: StopArgs, context: CommandContext): Promise<void> {
  const { connection, ui } = context;
  const api = await connection.running();
  if (api === undefined) {
    if (args.json) ui.json({ stopped: false });
    else ui.say('The controller does not run.');
    return undefined;
  }
  const elsewhere = await connection.elsewhere();
  if (elsewhere?.inCluster !== undefined) return stopInCluster(args, elsewhere, elsewhere.inCluster, api, context);
  const { pid } = await api.call('health');
  // A process on another machine cannot be watched from here; there it is seen to have ended when it no longer answers.
  const daemon = elsewhere === undefined ? identifyProcess(pid) : undefined;
  await api.call('stopController', { body: { keepServices: args.keepServices } });
  if (daemon !== undefined) await seeControllerGone(daemon, context);
  if (elsewhere !== undefined) await seeSilent(elsewhere, context);
  if (args.json) ui.json({ stopped: true });
  else if (elsewhere !== undefined) ui.say('The controller has stopped; its machine is still there. To give it back: svc controller down');
  else ui.say(args.keepServices ? 'The controller has stopped; services go on.' : 'The controller has stopped.');
  return undefined;
}

/** Kubernetes would start a process that ends again: its pods are what has to go. */
async function stopInCluster(
  args: StopArgs,
  elsewhere: Elsewhere,
  inCluster: InCluster,
  api: ApiClient,
  context: CommandContext,
): Promise<void> {
  const { ui } = context;
  if (!args.keepServices) await refuseWithServices(api);
  await inCluster.stop();
  await seeSilent(elsewhere, context);
  if (args.json) ui.json({ stopped: true });
  else ui.say('The controller has stopped; its balancers and its objects are still there. To remove them: svc controller down');
}

const silentTimeoutMs = 30_000;
const pollMs = 250;

async function seeSilent(elsewhere: Elsewhere, { clock, signal }: CommandContext): Promise<void> {
  const deadline = clock.monotonic() + silentTimeoutMs;
  while ((await elsewhere.running()) !== undefined) {
    if (clock.monotonic() > deadline)
      throw new SvcError('SVC_CONTROLLER_UNREACHABLE', 'The controller was told to stop and still answers.');
    await clock.sleep(pollMs, signal);
    signal.throwIfAborted();
  }
}
