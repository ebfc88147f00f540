import type { Provider } from '../providers/provider.ts';
import { fencedRemote } from '../remote/fenced-remote.ts';
import { fenced, type Fence } from '../shared/fence.ts';

/**
 * The same place, which is asked for nothing once the fence lets nothing through, and the same for its machines. Places check the fence before each of the
 * requests that a call needs besides; this holds for those too that send none.
 */
export function fencedPlace(provider: Provider, fence: Fence): Provider {
  return fenced(provider, fence, {
    free: ['remote'],
    wrap: {
      remote: (remote) => fencedRemote(remote, fence),
      nodes: async (nodes) => (await nodes).map((node) => ({ ...node, remote: fencedRemote(node.remote, fence) })),
    },
  });
}
