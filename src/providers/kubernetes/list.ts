import { isObject } from '../../shared/is-object.ts';
import { parseJson } from '../../shared/parse-json.ts';
import type { ListedMachine } from '../provider.ts';
import type { KubernetesCluster } from './kubernetes-cluster.ts';
import { isDeletionIdle, needsForcedDeletion } from './nodes/node-health.ts';
import { machineIdOf, ownAnnotations, ownLabels, tagLabel } from './names.ts';
import type { Pod } from '../../kubernetes/pod.ts';
import { pathOfAll } from '../../kubernetes/paths.ts';

/**
 * The machines of a namespace that have all of the tags. Machines whose pods are ending count as gone, unless their
 * node cannot end them now, or will never confirm it.
 */
export async function listMachines(
  cluster: KubernetesCluster,
  namespace: string,
  tags: Readonly<Record<string, string>>,
  signal: AbortSignal | undefined,
): Promise<readonly ListedMachine[]> {
  const required = Object.entries(tags).map(([name, value]) => `${name}=${tagLabel(value)}`);
  const labelSelector = [ownLabels.machine, ...required].join(',');
  const { items } = await cluster.api.list<Pod>(pathOfAll('Pod', namespace), { labelSelector, signal });
  const ending = items.filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
  const troubles = await cluster.troubles(ending, signal);
  const found = new Map<string, ListedMachine>();
  for (const { metadata, spec } of items) {
    const base = metadata.labels?.[ownLabels.machine];
    const trouble = troubles.get(spec?.nodeName ?? '');
    const isEnding = metadata.deletionTimestamp !== undefined && !needsForcedDeletion(trouble) && !isDeletionIdle(trouble);
    if (base === undefined || isEnding) continue;
    found.set(base, {
      id: machineIdOf({ context: cluster.context, namespace, base }),
      tags: tagsOf(metadata.annotations?.[ownAnnotations.tags]),
    });
  }
  return [...found.values()];
}

function tagsOf(text: string | undefined): Readonly<Record<string, string>> {
  const tags = parseJson(text ?? '');
  if (!isObject(tags)) return {};
  return Object.fromEntries(Object.entries(tags).filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}
