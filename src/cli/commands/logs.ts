import type { CommandContext } from '../context.ts';
import { reportJob } from '../job-result.ts';
import { clusterNotFound, parseId } from '../name-patterns.ts';

interface LogsArgs {
  readonly cluster: string;
  readonly job: string | undefined;
  readonly follow: boolean | undefined;
  readonly tail: number | undefined;
}

/** `svc logs`: the output of a job. When it is followed to its end, the exit code reports how the job ended. */
export async function logs(args: LogsArgs, context: CommandContext): Promise<number> {
  const { ui, connection, signal } = context;
  const api = await connection.existing();
  const clusters = (await api?.call('listClusters'))?.clusters ?? [];
  const cluster = clusters.find(({ name }) => name === args.cluster);
  if (api === undefined || cluster === undefined) throw clusterNotFound(args.cluster, clusters);
  const job = args.job === undefined ? cluster.jobs.at(-1)?.id : parseId(args.job, 'job');
  const follow = args.follow ?? true;
  const query = { follow, ...(job !== undefined && { job }), ...(args.tail !== undefined && { tail: args.tail }) };
  for await (const chunk of api.text('clusterLogs', { params: { name: args.cluster }, query })) ui.write(chunk);
  return follow && job !== undefined && !signal.aborted ? reportJob(api, args.cluster, job, context) : 0;
}
