import { SvcError } from '../../shared/errors.ts';
import { identifyProcess, isAlive } from '../../shared/process-identity.ts';
import type { CommandContext } from '../context.ts';

interface StopArgs {
  readonly keepServices: boolean;
  readonly json: boolean;
}

/** How long it may take to end, ms; it lets calls finish and writes its state. */
const stopTimeoutMs = 30_000;
const pollMs = 50;

/** `svc controller stop`: ends the controller's process and sees it gone. One that does not run is stopped already. */
export async function controllerStop(args: StopArgs, { connection, ui, clock, signal }: CommandContext): Promise<void> {
  const api = await connection.running();
  if (api === undefined) {
    if (args.json) ui.json({ stopped: false });
    else ui.say('The controller does not run.');
    return;
  }
  const { pid } = await api.call('health');
  const daemon = identifyProcess(pid);
  const lives = (): boolean => daemon !== undefined && isAlive(daemon);
  await api.call('stopController', { body: { keepServices: args.keepServices } });
  const deadline = clock.monotonic() + stopTimeoutMs;
  while (lives()) {
    if (clock.monotonic() >= deadline) {
      throw new SvcError('SVC_CONTROLLER_UNREACHABLE', `The controller (process ${pid}) does not end.`, { hint: `Run: kill -9 ${pid}` });
    }
    await clock.sleep(pollMs, signal);
    signal.throwIfAborted();
  }
  if (args.json) ui.json({ stopped: true });
  else ui.say(args.keepServices ? 'The controller has stopped; services go on.' : 'The controller has stopped.');
}
