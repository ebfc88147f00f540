import type { ApiClient } from '../api/client.ts';
import type { RouteReply } from '../api/contract.ts';
import type { CommandContext } from './context.ts';
import { followJob } from './job-result.ts';
import type { OnceFile } from './task-source.ts';

/** Timeout, ms: a new machine and the copy of a large workdir take minutes. */
const launchTimeoutMs = 600_000;

/** A job for a cluster. */
interface Job extends OnceFile {
  readonly mode: 'launch' | 'exec';
  /** A generated name when absent. */
  readonly cluster: string | undefined;
}

/** Submits a job to the controller, and follows it to its end unless `options` say otherwise. Returns the exit code. */
export async function submitJob(
  { task, body, mode, cluster: requestedCluster }: Job,
  options: { readonly detach: boolean; readonly json: boolean },
  context: CommandContext,
): Promise<number> {
  const { ui, connection } = context;
  const progress = ui.progress();
  progress.now('Handing the task to the controller');
  const onStep = (text: string): void => progress.now(text);
  const hand = async (): Promise<{ readonly api: ApiClient; readonly reply: RouteReply<'launch'> }> => {
    const api = await connection.client(onStep, task.resources);
    const upload = await connection.bring(task, body.file, onStep);
    const request = {
      ...body,
      mode,
      ...(requestedCluster !== undefined && { cluster: requestedCluster }),
      ...(upload !== undefined && { upload }),
    };
    return { api, reply: await api.call('launch', { body: request, timeoutMs: launchTimeoutMs }) };
  };
  const { api, reply } = await hand().finally(() => progress.stop());
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
