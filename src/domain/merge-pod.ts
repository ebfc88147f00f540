import { isObject } from '../shared/is-object.ts';
import { mainContainer } from './pod-config.ts';

type Map = Readonly<Record<string, unknown>>;

/** Lists whose entries are told apart by one of their fields: an entry that is there already is merged, others come after it. */
const keyed: Readonly<Record<string, string>> = {
  containers: 'name',
  initContainers: 'name',
  volumes: 'name',
  imagePullSecrets: 'name',
  env: 'name',
  volumeMounts: 'mountPath',
  ports: 'containerPort',
  resourceClaims: 'name',
};

/** Lists to which entries are added. */
const added = new Set(['tolerations', 'envFrom', 'hostAliases', 'topologySpreadConstraints', 'readinessGates', 'schedulingGates']);

/**
 * A pod with a partial one merged into it, in the way of Kubernetes' own patches: maps field by field, `null` takes a field away, lists that name their
 * entries entry by entry, tolerations and the like one after the other; any other list is replaced. A container without a name is ours.
 */
export function mergePod(pod: Map, patch: Map): Map {
  return mergeMaps(pod, patch);
}

function mergeMaps(base: Map, patch: Map): Map {
  const merged: Record<string, unknown> = { ...base };
  for (const [name, given] of Object.entries(patch)) {
    if (given === null) delete merged[name];
    else merged[name] = mergeValues(name, base[name], given);
  }
  return merged;
}

function mergeValues(name: string, base: unknown, given: unknown): unknown {
  if (isObject(given)) return mergeMaps(isObject(base) ? base : {}, given);
  if (!Array.isArray(given)) return given;
  const before: readonly unknown[] = Array.isArray(base) ? base : [];
  const by = keyed[name];
  if (by !== undefined) return mergeLists(before, given, by, name === 'containers' ? mainContainer : undefined);
  return added.has(name) ? [...before, ...given] : given;
}

function mergeLists(base: readonly unknown[], patch: readonly unknown[], by: string, unnamed: string | undefined): readonly unknown[] {
  const merged = [...base];
  for (const entry of patch) {
    const id = isObject(entry) ? (entry[by] ?? unnamed) : undefined;
    const at = id === undefined ? -1 : merged.findIndex((one) => isObject(one) && one[by] === id);
    const there = merged[at];
    if (isObject(entry) && isObject(there)) merged[at] = mergeMaps(there, entry);
    else merged.push(isObject(entry) && entry[by] === undefined && unnamed !== undefined ? { [by]: unnamed, ...entry } : entry);
  }
  return merged;
}
