import { join } from 'node:path';
import type { HomePaths } from '../../shared/paths.ts';
import { IntentLog } from '../intent-log.ts';

/** Folder of a home's data about a cloud, below SVC_HOME: `ssh/CLOUD/`. */
export function cloudDir(paths: Pick<HomePaths, 'sshDir'>, cloud: string): string {
  return join(paths.sshDir, cloud);
}

/** Intents of one kind at a cloud whose names say all, such as the regions that may have machines. */
export type NamedIntents = IntentLog<true>;

/** The intents of a kind at a cloud. */
export function namedIntents(paths: Pick<HomePaths, 'sshDir'>, cloud: string, kind: 'controllers' | 'regions' | 'roles'): NamedIntents {
  return new IntentLog({ dir: join(cloudDir(paths, cloud), kind), read: () => true });
}
