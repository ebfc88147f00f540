import type { ApiClient } from '../api/client.ts';
import type { CommandContext } from './context.ts';
import { jobExitCodes, unknownJobCode } from './job-exit-codes.ts';

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
    return unknownJobCode;
  }
  const code = result.exitCode === null ? '' : ` (exit code ${result.exitCode})`;
  ui.say(`Job ${job} on '${cluster}': ${result.status}${code}`);
  return jobExitCodes[result.status];
}
