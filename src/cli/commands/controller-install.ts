import { bootEnv } from '../../domain/boot-entry.ts';
import { SvcError } from '../../shared/errors.ts';
import { bootDeps, type BootEntry, findBootEntry, installBootEntry, uninstallBootEntry } from '../boot/boot-entries.ts';
import type { CommandContext } from '../command.ts';
import { retireController } from '../connection/controller-process.ts';

interface JsonArgs {
  readonly json: boolean;
}

/** `svc controller install`: has this machine start the controller after a reboot. */
export async function controllerInstall(args: JsonArgs, context: CommandContext): Promise<void> {
  const { connection, ui, env } = context;
  await refuseRemote(context);
  const entry = await installBootEntry(bootDeps(context));
  // systemd also restarts a crashed controller, if it has started it. This also shows now whether the unit works.
  if (entry.kind !== 'cron') {
    const running = await connection.running();
    if (running !== undefined) await retireController((await running.call('health')).pid, context);
    await (running === undefined ? connection.existing() : connection.client());
  }
  const { secrets } = bootEnv(env);
  if (args.json) return ui.json({ installed: entry, notPassedOn: secrets });
  ui.say(`After a reboot, ${starter(entry)} starts the controller, and the controller starts its services.`);
  if (entry.kind !== 'cron') ui.say('systemd also restarts the controller after a crash. svc controller stop still stops it.');
  if (secrets.length > 0) {
    ui.say(`Not passed on, because others may read a unit or a crontab: ${secrets.join(', ')}.`);
    ui.say('The controller then lacks them: use files instead, such as ~/.aws/credentials, or config.yaml.');
  }
  return ui.say('To undo it: svc controller uninstall');
}

/** `svc controller uninstall`: undoes it. Succeeds when nothing is installed. */
export async function controllerUninstall(args: JsonArgs, context: CommandContext): Promise<void> {
  const { ui } = context;
  const entry = await uninstallBootEntry(bootDeps(context));
  if (args.json) return ui.json({ removed: entry ?? null });
  if (entry === undefined) return ui.say('Nothing starts the controller after a reboot. To have that: svc controller install');
  ui.say(`After a reboot, ${starter(entry)} does not start the controller any more. The next svc command does.`);
  // Other units of the user may need it.
  if (entry.kind === 'user-unit') ui.say('Lingering stays on for this user. To end it: loginctl disable-linger');
}

/** A remote controller's machine starts it by itself: see `src/node/controller.sh`. */
async function refuseRemote({ connection }: CommandContext): Promise<void> {
  if ((await connection.remoteController()) === undefined) return;
  throw new SvcError('SVC_INSTALL_REFUSED', 'The controller is on another machine, which starts it by itself after a reboot.', {
    hint: 'To see it: svc controller status',
  });
}

const starter = ({ kind, name }: BootEntry): string =>
  kind === 'cron' ? `cron (@reboot, ${name})` : `systemd (${kind === 'system-unit' ? '' : "the user's "}unit ${name})`;

/** What `svc controller status` says about a reboot. */
export async function bootStatus(context: CommandContext): Promise<{ readonly entry: BootEntry | undefined; readonly text: string }> {
  const entry = await findBootEntry(bootDeps(context));
  if (entry === undefined) return { entry, text: 'the next command starts it; to have it started at boot: svc controller install' };
  const moved = entry.isCurrent ? '' : ', with another copy of svc; to use this one: svc controller install';
  return { entry, text: `${starter(entry)} starts it${moved}` };
}
