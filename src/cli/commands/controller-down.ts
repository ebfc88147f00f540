import { describeMachine } from '../../domain/remote-controller-info.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import type { CommandContext } from '../context.ts';
import type { RemoteController } from '../connection/controller-connection.ts';
import { refuseWithServices } from '../connection/controller-process.ts';

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
  // The machine was never set up, or was stopped by hand without services: no controller answers, and nothing would be
  // lost.
  if (api === undefined) return;
  await refuseWithServices(api);
}
