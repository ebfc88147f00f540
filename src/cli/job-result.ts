import type { ApiClient } from '../api/client.ts';
import type { CommandContext } from './context.ts';
import type { JobView } from '../api/contract.ts';

/** Shows a job's output until the job ends, and reports how it ended. Returns the exit code. */
export async function followJob(api: ApiClient, cluster: string, job: number, context: CommandContext): Promise<number> {
  const { ui, signal } = context;
  for await (const chunk of api.text('clusterLogs', { params: { name: cluster }, query: { job, follow: true } })) ui.write(chunk);
  if (signal.aborted) {
    ui.say(`Job ${job} goes on. To read its output: svc logs ${cluster} ${job}`);
    return 0;
  }
  return reportJob(api, cluster, job, context);
}

/** Reports how a job ended, and returns its exit code. */
export async function reportJob(api: ApiClient, cluster: string, job: number, { ui }: CommandContext): Promise<number> {
  const found = (await api.call('listClusters')).clusters.find(({ name }) => name === cluster);
  const result = found?.jobs.find(({ id }) => id === job);
  if (result === undefined) {
    ui.say(found?.reason ?? `The cluster '${cluster}' is gone, and job ${job} with it.`);
    return unknownJobCode;
  }
  const code = result.exitCode === null ? '' : ` (exit code ${result.exitCode})`;
  ui.say(`Job ${job} on '${cluster}': ${result.status}${code}`);
  return jobExitCodes[result.status];
}

/** Exit codes by job status, as users of similar tools know them. A failed job differs from a failed command. */
export const jobExitCodes: Readonly<Record<JobView['status'], number>> = {
  SUCCEEDED: 0,
  FAILED: 100,
  FAILED_SETUP: 100,
  PENDING: 101,
  SETTING_UP: 101,
  RUNNING: 101,
  CANCELLED: 103,
};

/** For a job whose cluster no longer exists. */
export const unknownJobCode = 102;
