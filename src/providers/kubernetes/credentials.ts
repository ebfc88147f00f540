import { join } from 'node:path';
import { portableKubeconfig } from '../../kubernetes/portable-kubeconfig.ts';
import type { ControllerTarget, PortableCredentials } from '../provider.ts';
import type { Clusters } from './clusters.ts';
import type { ClusterNotes } from './notes.ts';

/** Where a controller elsewhere has its kubeconfig, below its home. */
const kubeconfigFile = 'kubernetes/kubeconfig';

/** A kubeconfig of the contexts that may be used, for a controller elsewhere; undefined when there is none. */
export async function portableLogin(
  clusters: Clusters,
  notes: ClusterNotes,
  { key, home }: Pick<ControllerTarget, 'key' | 'home'>,
): Promise<PortableCredentials | undefined> {
  const { usable } = await clusters.known();
  if (usable.length === 0) return undefined;
  const { text, contexts, leftOut } = portableKubeconfig(usable);
  // What it will launch there is looked for from here when it is lost.
  if (key !== undefined)
    for (const context of contexts) {
      const namespace = (await clusters.configOf(context)).namespace ?? clusters.contexts().cluster(context).namespace;
      notes.put({ context, namespace, tags: { 'svc-owner': key } });
    }
  const without = leftOut.map(({ context, reason }) => `${context}: ${reason}`).join('; ');
  if (text === undefined) return { summary: `no context of your kubeconfig (${without})`, files: [], environment: {} };
  return {
    summary: `your login to ${contexts.join(', ')}${without === '' ? '' : `; without ${without}`}`,
    files: [{ path: kubeconfigFile, content: text }],
    environment: { KUBECONFIG: join(home, kubeconfigFile) },
  };
}
