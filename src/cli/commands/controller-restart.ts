import type { InCluster } from '../cluster-connection.ts';
import type { CommandContext } from '../context.ts';
import { retireController } from '../controller-process.ts';
import { controllerUpgrade } from './controller-upgrade.ts';

interface RestartArgs {
  readonly json: boolean;
}

/** `svc controller restart`: ends the controller, if it runs, and starts one with the code that is there now. It renews the processes of services. */
export async function controllerRestart(args: RestartArgs, context: CommandContext): Promise<void> {
  const { connection, ui } = context;
  const elsewhere = await connection.elsewhere();
  if (elsewhere?.inCluster !== undefined) return restartInCluster(args, elsewhere.inCluster, context);
  if (elsewhere !== undefined) return controllerUpgrade(args, context);
  const running = await connection.running();
  if (running !== undefined) await retireController((await running.call('health')).pid, context);
  const api = await connection.client();
  const health = await api.call('health');
  if (args.json) ui.json(health);
  else ui.say(`The controller runs as process ${health.pid}, version ${health.version}. Its log is ${health.log}`);
  return undefined;
}

/** One pod after the other: with two of a kind there is always one that works. */
async function restartInCluster(args: RestartArgs, inCluster: InCluster, { connection, ui }: CommandContext): Promise<void> {
  const progress = ui.progress();
  try {
    await inCluster.restart((text) => progress.now(text));
    const health = await (await connection.client()).call('health');
    progress.stop();
    if (args.json) ui.json(health);
    else ui.say(`All pods of the controller were started anew (version ${health.version}).`);
  } finally {
    progress.stop();
  }
}
