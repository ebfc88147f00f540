import type { CommandContext } from '../context.ts';

interface UpgradeArgs {
  readonly json: boolean;
}

/** `svc controller upgrade`: copies this program to the controller's machine and replaces the running one there. */
export async function controllerUpgrade(args: UpgradeArgs, { connection, ui }: CommandContext): Promise<void> {
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
