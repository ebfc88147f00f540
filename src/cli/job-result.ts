import type { ApiClient } from '../api/client.ts';
import type { JobView } from '../api/contract.ts';
import type { CommandContext } from './context.ts';

/** Exit codes for how a job ended, as users of this kind of tool know them: a failed job is not a failed command. */
const jobExitCodes: Readonly<Record<JobView['status'], number>> = {
  SUCCEEDED: 0,
  FAILED: 100,
  FAILED_SETUP: 100,
  PENDING: 101,
  SETTING_UP: 101,
  RUNNING: 101,
  CANCELLED: 103,
};
const unknownJob = 102;

/** Shows the output of a job as it comes, until it ends, and says how it ended. Gives the exit code. */
export async function followJob(api: ApiClient, cluster: string, job: number, context: CommandContext): Promise<number> {
  const { ui, signal } = context;
  for await (const chunk of api.text('clusterLogs', { params: { name: cluster }, query: { job, follow: true } })) ui.write(chunk);
  if (signal.aborted) {
    ui.say(`Job ${job} goes on. To read its output: svc logs ${cluster} ${job}`);
    return 0;
  }
  return reportJob(api, cluster, job, context);
}

/** Says how a job ended, and gives the exit code for it. */
export async function reportJob(api: ApiClient, cluster: string, job: number, { ui }: CommandContext): Promise<number> {
  const found = (await api.call('listClusters')).clusters.find(({ name }) => name === cluster);
  const result = found?.jobs.find(({ id }) => id === job);
  if (result === undefined) {
    ui.say(found?.reason ?? `The cluster '${cluster}' is gone, and job ${job} with it.`);
    return unknownJob;
  }
  const code = result.exitCode === null ? '' : ` (exit code ${result.exitCode})`;
  ui.say(`Job ${job} on '${cluster}': ${result.status}${code}`);
  return jobExitCodes[result.status];
}
