import { identifyProcess } from '../../shared/process-identity.ts';
import type { CommandContext } from '../context.ts';
import { seeControllerGone } from '../controller-process.ts';

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
    return;
  }
  const { pid } = await api.call('health');
  const daemon = identifyProcess(pid);
  await api.call('stopController', { body: { keepServices: args.keepServices } });
  if (daemon !== undefined) await seeControllerGone(daemon, context);
  if (args.json) ui.json({ stopped: true });
  else ui.say(args.keepServices ? 'The controller has stopped; services go on.' : 'The controller has stopped.');
}
