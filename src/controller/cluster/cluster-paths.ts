import { join } from 'node:path';
import type { HomePaths } from '../../shared/paths.ts';

/** Files of one cluster. */
export interface ClusterPaths {
  readonly dir: string;
  /** How its machine was got. */
  readonly launchLog: string;
  /** What was done for a job before it ran. */
  provisionLog(jobId: number): string;
  /** Copies of a job's working directory and mounts. */
  snapshot(jobId: number): string;
  jobLog(jobId: number): string;
}

/** Pure. By key, not by name: a cluster launched again under a name shares nothing with the one before. */
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

/** Logs of a job in the order in which they were written. How the machine was got belongs to the job that it was got for, and to who waits for it. */
export function jobLogs(
  files: ClusterPaths,
  jobId: number,
  { isFirst, isUp }: { readonly isFirst: boolean; readonly isUp: boolean },
): string[] {
  return [...(isFirst || !isUp ? [files.launchLog] : []), files.provisionLog(jobId), files.jobLog(jobId)];
}
