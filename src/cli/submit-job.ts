import type { ApiClient } from '../api/client.ts';
import type { RouteInput } from '../api/contract.ts';
import type { CommandContext } from './context.ts';
import { followJob } from './job-result.ts';

/** Making a machine, and copying a large workdir, take their time, ms. */
const launchTimeoutMs = 600_000;

/** Hands a job to the controller and follows it to its end, unless told otherwise. Gives the exit code. */
export async function submitJob(
  api: ApiClient,
  body: RouteInput<'launch'>['body'],
  options: { readonly detach: boolean; readonly json: boolean },
  context: CommandContext,
): Promise<number> {
  const { ui } = context;
  const progress = ui.progress();
  progress.now('Handing the task to the controller');
  const reply = await api.call('launch', { body, timeoutMs: launchTimeoutMs }).finally(() => progress.stop());
  const { cluster, jobId } = reply;
  if (options.json) {
    ui.json(reply);
    return 0;
  }
  ui.say(`Job ${jobId} on cluster '${cluster.name}'.`);
  if (options.detach) {
    ui.say(`To read its output: svc logs ${cluster.name} ${jobId}`);
    return 0;
  }
  return followJob(api, cluster.name, jobId, context);
}
