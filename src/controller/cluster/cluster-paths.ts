import { join } from 'node:path';
import type { HomePaths } from '../../shared/paths.ts';

/** Files of one cluster. */
export interface ClusterPaths {
  readonly dir: string;
  readonly provisionLog: string;
  /** Copies of a job's working directory and mounts. */
  snapshot(jobId: number): string;
  jobLog(jobId: number): string;
}

/** Pure. By key, not by name: a cluster launched again under a name shares nothing with the one before. */
export function clusterPaths(paths: HomePaths, key: string): ClusterPaths {
  const dir = join(paths.clustersDir, key);
  return {
    dir,
    provisionLog: join(dir, 'provision.log'),
    snapshot: (jobId) => join(dir, 'jobs', String(jobId)),
    jobLog: (jobId) => join(dir, 'jobs', `${jobId}.log`),
  };
}
