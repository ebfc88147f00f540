import { getuid } from 'node:process';
import { homePaths, type HomePaths } from '../shared/paths.ts';
import { bootId, pidSpace } from '../shared/process-identity.ts';
import type { Store } from '../store/store.ts';

/** With what the owner of a list of homes begins; keys of services and clusters have no such character. */
const prefix = '.homes ';

/**
 * Homes of this machine, and this user, whose controllers share one state: what one of them has running here the others go on with. Records that this is one
 * of them, unless the state is this home's alone. `isRecorded` is false where nothing is to be written.
 */
export async function peerHomes(store: Store, paths: HomePaths, isRecorded: boolean): Promise<readonly HomePaths[]> {
  if (!store.isShared) return [];
  const uid = getuid?.() ?? 0;
  // Processes of a boot that is over, or of another container, are gone or out of reach.
  const owner = `${prefix}${bootId()} ${pidSpace()} ${uid}`;
  const homes = [...(await store.files.trees(owner)).keys()];
  if (isRecorded && !homes.includes(paths.home)) await store.files.setTree(owner, paths.home, '{}');
  return homes.filter((home) => home !== paths.home).map((home) => homePaths(home, uid));
}

/** Whether an owner of kept files is a list of homes. */
export function isHomeList(owner: string): boolean {
  return owner.startsWith(prefix);
}
