import { isObject } from '../../shared/json.ts';
import { mainContainer } from './pod-config.ts';

type Map = Readonly<Record<string, unknown>>;

/** Lists with named entries: an existing entry is merged, others are appended. */
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

const added = new Set(['tolerations', 'envFrom', 'hostAliases', 'topologySpreadConstraints', 'readinessGates', 'schedulingGates']);

/**
 * Merges a partial pod into a pod, by the rules of Kubernetes' own patches:
 * - Maps are merged field by field, and `null` removes a field.
 * - Lists with named entries are merged entry by entry; a container without a name is the main container.
 * - Tolerations and similar lists are appended. Any other list is replaced.
 */
export function mergePod(base: Map, patch: Map): Map {
  const merged: Record<string, unknown> = { ...base };
  for (const [name, given] of Object.entries(patch)) {
    if (given === null) delete merged[name];
    else merged[name] = mergeValues(name, base[name], given);
  }
  return merged;
}

function mergeValues(name: string, base: unknown, given: unknown): unknown {
  if (isObject(given)) return mergePod(isObject(base) ? base : {}, given);
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
    const existing = merged[at];
    if (isObject(entry) && isObject(existing)) merged[at] = mergePod(existing, entry);
    else merged.push(isObject(entry) && entry[by] === undefined && unnamed !== undefined ? { [by]: unnamed, ...entry } : entry);
  }
  return merged;
}
