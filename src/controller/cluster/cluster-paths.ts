import { join } from 'node:path';
import type { HomePaths } from '../../shared/paths.ts';

interface ClusterPaths {
  readonly dir: string;
  /** Log of how its machine was acquired. */
  readonly launchLog: string;
  provisionLog(jobId: number): string;
  /** Copies of a job's working directory and mounts. */
  snapshot(jobId: number): string;
  jobLog(jobId: number): string;
}

/** By key, not by name: a cluster launched again under the same name shares nothing with the earlier one. Pure. */
export function clusterPaths(paths: HomePaths, key: string): ClusterPaths {
  const dir = join(paths.clustersDir, key);
  return {
    dir,
    launchLog: join(dir, 'provision.log'),
    provisionLog: (jobId) => join(dir, 'jobs', `${jobId}.provision.log`),
    snapshot: (jobId) => join(dir, 'jobs', String(jobId)),
    jobLog: (jobId) => join(dir, 'jobs', `${jobId}.log`),
  };
}

/** A job's logs in the order of writing. The first job, and jobs that wait for the machine, get the launch log too. */
export function jobLogs(
  files: ClusterPaths,
  jobId: number,
  { isFirst, isUp }: { readonly isFirst: boolean; readonly isUp: boolean },
): string[] {
  return [...(isFirst || !isUp ? [files.launchLog] : []), files.provisionLog(jobId), files.jobLog(jobId)];
}
