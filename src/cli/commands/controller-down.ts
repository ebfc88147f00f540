import { describePlace } from '../../domain/controller-host.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import type { CommandContext } from '../context.ts';
import type { Elsewhere } from '../elsewhere-connection.ts';
import { refuseWithServices } from '../refuse-with-services.ts';

interface DownArgs {
  readonly yes: boolean;
  readonly purge: boolean;
  readonly json: boolean;
}

/** `svc controller down`: gives the controller's machine back, unless something still needs it. */
export async function controllerDown(args: DownArgs, { connection, ui }: CommandContext): Promise<void> {
  const elsewhere = await connection.elsewhere();
  const record = elsewhere?.record();
  if (elsewhere === undefined || record === undefined) {
    if (args.json) ui.json({ removed: false });
    else ui.say('There is no controller on another machine. To stop the one on this machine: svc controller stop');
    return;
  }
  if (!args.purge && record.machineId !== null) await refuseWhileNeeded(elsewhere);
  const where = record.place === null ? '' : ` at ${describePlace(record.place)}`;
  const { cluster } = record;
  const inCluster = cluster === undefined ? undefined : `the controller and its balancers from ${cluster.context}/${cluster.namespace}`;
  const more = args.purge ? ' and every machine it launched' : '';
  const question = inCluster === undefined ? `Give back the machine of the controller${where}${more}?` : `Remove ${inCluster}${more}?`;
  if (!(await ui.confirm(question, args.yes))) throw new SvcError('SVC_ABORTED', 'Nothing was given back.');
  const progress = ui.progress();
  let left: string | undefined;
  try {
    left = await elsewhere.remove(args.purge, (text) => progress.now(text));
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
  ui.say(cluster === undefined ? `The machine of the controller${where} was given back.` : `Removed ${inCluster}.`);
}

/** A machine that is stopped had nothing to do any more when it was stopped. One that cannot be asked may have services. */
async function refuseWhileNeeded(elsewhere: Elsewhere): Promise<void> {
  const status = await elsewhere.machine();
  if (status?.state === 'stopped') {
    if (elsewhere.inCluster === undefined) return;
    throw new SvcError('SVC_CONTROLLER_UNREACHABLE', 'The controller is stopped, so whether it still has services cannot be asked.', {
      hint: 'Start it first: svc controller start. To remove it with everything it launched: svc controller down --purge',
    });
  }
  const api = await elsewhere.running().catch((error: unknown) => {
    throw new SvcError('SVC_CONTROLLER_UNREACHABLE', `Whether the controller still has services cannot be asked: ${messageOf(error)}`, {
      hint: 'Try again. To remove it with everything it launched: svc controller down --purge',
    });
  });
  // It is there and was never furnished, or was stopped by hand with nothing left: there is nobody to ask, and nothing to keep.
  if (api === undefined) return;
  await refuseWithServices(api);
}
