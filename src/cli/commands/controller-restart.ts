import type { KubernetesOperations } from '../connection/controller-connection.ts';
import type { CommandContext } from '../context.ts';
import { retireController } from '../connection/controller-process.ts';
import { controllerUpgrade } from './controller-upgrade.ts';

interface RestartArgs {
  readonly json: boolean;
}

/**
 * `svc controller restart`: ends the controller, if it runs, and starts one with the installed code. That renews the
 * processes of services.
 */
export async function controllerRestart(args: RestartArgs, context: CommandContext): Promise<void> {
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
async function restartInCluster(args: RestartArgs, inCluster: KubernetesOperations, { connection, ui }: CommandContext): Promise<void> {
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
