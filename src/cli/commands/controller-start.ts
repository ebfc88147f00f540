import { logCommand } from '../listing/kubernetes-controller-listing.ts';
import type { CommandContext } from '../context.ts';

interface StartArgs {
  readonly json: boolean;
}

/** `svc controller start`: starts the controller unless it runs. */
export async function controllerStart(args: StartArgs, { connection, ui }: CommandContext): Promise<void> {
  const api = await connection.client();
  const health = await api.call('health');
  if (args.json) return ui.json(health);
  const cluster = await (await connection.remoteController())?.inCluster?.status();
  if (cluster === undefined) return ui.say(`The controller runs as process ${health.pid}. Its log is ${health.log}`);
  return ui.say(`The controller runs in ${cluster.context}/${cluster.namespace}. To read its log: ${logCommand(cluster)}`);
}
