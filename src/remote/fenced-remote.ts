import { fenced, type Fence } from '../shared/fence.ts';
import type { Remote } from './remote.ts';

/** The same machine, on which nothing is done once the fence lets nothing through. */
export function fencedRemote(remote: Remote, fence: Fence): Remote {
  return fenced(remote, fence, { free: ['localPath'] });
}
