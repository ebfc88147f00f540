import type { Provider, MachineId } from '../../providers/provider.ts';
import { bootstrap } from '../../provision/bootstrap.ts';
import type { JobStatus } from '../../provision/job.ts';
import { stopNodes, watchNodes } from '../../provision/node-jobs.ts';
import { fileProvisionLog } from '../../provision/provision-log.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import type { Change, ClusterRecord, JobRecord } from '../../domain/records.ts';
import type { DaemonContext } from '../daemon-context.ts';
import type { PublishedFiles } from '../deploy/deployments.ts';
import { keepJobLog } from '../job-log.ts';
import { clusterPaths } from './cluster-paths.ts';

/** A job's name on its machine. */
export const machineJobName = (jobId: number): string => `job-${jobId}`;

/** Delay before work on an unreachable machine is retried, ms. */
const silentPauseMs = 2_000;

/** Time from SIGTERM to SIGKILL on the other nodes after one node failed, ms. */
const nodeGraceMs = 10_000;

/** Runs one job on its cluster's machine to its end, or follows a job that an earlier daemon started. */
export async function runClusterJob(
  context: DaemonContext,
  cluster: ClusterRecord,
  first: JobRecord,
  provider: Provider,
  machine: MachineId,
  deployment: PublishedFiles,
  signal: AbortSignal,
): Promise<void> {
  const files = clusterPaths(context.paths, cluster.key);
  const name = machineJobName(first.id);
  let job = first;
  const patch = async (change: Change<JobRecord>): Promise<void> => {
    job = (await context.store.clusters.updateJob(job, change)) ?? job;
  };
  const over = new AbortController();
  const stopFollowing = (): void => over.abort();
  signal.addEventListener('abort', stopFollowing, { once: true });
  try {
    const log = fileProvisionLog(files.provisionLog(job.id), context.clock);
    const nodes = await bootstrap(
      { provider, id: machine },
      {
        task: job.task,
        snapshot: { dir: files.snapshot(job.id), name },
        delivery: await deployment.delivery(provider, cluster.offer?.region),
        jobName: name,
        identity: {
          owner: cluster.name,
          replicaId: undefined,
          taskId: `svc-${cluster.name}-${job.id}`,
          port: undefined,
          gpus: cluster.offer?.gpus ?? 0,
        },
        log,
        isolated: false,
        keepExtra: true,
      },
      signal,
    );
    const onError = (error: unknown): void => context.log.warn({ err: error, job: job.id }, 'cannot keep its log');
    const kept = keepJobLog(nodes, name, files.jobLog(job.id), { clock: context.clock, onError }, over.signal);
    for await (const status of watchNodes(nodes, name, signal, { clock: context.clock, endsWith: 'all' })) {
      kept.refresh();
      const change = jobChange(status, job, context.clock.now());
      if (change?.endedAt !== undefined) {
        // The other nodes would wait for the failed one for ever.
        if (nodes.length > 1) await stopNodes(nodes, name, { graceMs: nodeGraceMs, signal });
        // A client that follows the log stops at the recorded end.
        await Promise.all(nodes.map(({ rank }) => kept.untilKept(rank)));
      }
      if (change !== undefined) await patch(change);
      if (job.endedAt !== null) return;
    }
  } catch (error) {
    if (signal.aborted) return;
    context.log.warn({ err: error, cluster: cluster.name, job: job.id }, 'a job could not be run');
    if (error instanceof SvcError && error.kind === 'transient') {
      // An unreachable machine says nothing about the job: it is started, or followed, again.
      await context.clock.sleep(silentPauseMs, signal);
      return;
    }
    fileProvisionLog(files.provisionLog(job.id), context.clock)(`Job ${job.id} could not be run: ${messageOf(error)}`);
    await patch({ state: 'FAILED', endedAt: context.clock.now() });
  } finally {
    signal.removeEventListener('abort', stopFollowing);
    over.abort();
  }
}

function jobChange(status: JobStatus, job: JobRecord, now: number): Change<JobRecord> | undefined {
  const { phase, failedPhase, exitCode } = status;
  if (phase === 'setup' || phase === 'waiting') return job.state === 'SETTING_UP' ? undefined : { state: 'SETTING_UP', startedAt: now };
  if (phase === 'run') return job.state === 'RUNNING' ? undefined : { state: 'RUNNING', startedAt: job.startedAt ?? now };
  if (phase === 'lost') return { state: 'FAILED', endedAt: now };
  if (phase === 'absent') return undefined;
  const failed = failedPhase === 'setup' ? 'FAILED_SETUP' : 'FAILED';
  return { state: exitCode === 0 ? 'SUCCEEDED' : failed, exitCode: exitCode ?? null, endedAt: now };
}
