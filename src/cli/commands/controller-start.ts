import type { CommandContext } from '../context.ts';

interface StartArgs {
  readonly json: boolean;
}

/** `svc controller start`: makes sure that it runs. */
export async function controllerStart(args: StartArgs, { connection, ui }: CommandContext): Promise<void> {
  const api = await connection.client();
  const health = await api.call('health');
  if (args.json) ui.json(health);
  else ui.say(`The controller runs as process ${health.pid}. Its log is ${health.log}`);
}
