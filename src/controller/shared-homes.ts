import { getuid } from 'node:process';
import { homePaths, type HomePaths } from '../shared/paths.ts';
import { bootId, pidSpace } from '../shared/system/process-identity.ts';
import type { Store } from '../store/store.ts';

/** Prefix of the owner of a home list; keys of services and clusters never contain this character. */
const prefix = '.homes ';

/**
 * Other homes of this machine and user whose controllers share one state: a controller adopts processes that another
 * one left. Adds this home to the list if the state is shared and `isRecorded` (false: nothing may be written).
 */
export async function peerHomes(store: Store, paths: HomePaths, isRecorded: boolean): Promise<readonly HomePaths[]> {
  if (!store.isShared) return [];
  const uid = getuid?.() ?? 0;
  // Processes of a former boot or of another container are gone or out of reach.
  const owner = `${prefix}${bootId()} ${pidSpace()} ${uid}`;
  const homes = [...(await store.files.trees(owner)).keys()];
  if (isRecorded && !homes.includes(paths.home)) await store.files.setTree(owner, paths.home, '{}');
  return homes.filter((home) => home !== paths.home).map((home) => homePaths(home, uid));
}

/** Whether an owner of kept files is a list of homes. */
export function isHomeList(owner: string): boolean {
  return owner.startsWith(prefix);
}
