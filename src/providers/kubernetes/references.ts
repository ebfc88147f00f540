import type { KubeDraft } from '../../kubernetes/kube-api.ts';
import { isObject } from '../../shared/is-object.ts';

/** An object that a pod cannot start without. */
export interface Reference {
  readonly kind: 'PersistentVolumeClaim' | 'ConfigMap';
  readonly name: string;
}

/**
 * The claims and ConfigMaps that a pod names, each once: clusters take pods whose claims and ConfigMaps do not exist, and then never start them. Secrets are
 * left out, as nobody but the cluster is to look for them; service accounts and classes, as it does that by itself.
 */
export function referencesOf(pod: KubeDraft): readonly Reference[] {
  const spec = isObject(pod['spec']) ? pod['spec'] : {};
  const volumes = itemsOf(spec, 'volumes');
  const claims = volumes.flatMap((volume) => nameIn(volume['persistentVolumeClaim'], 'claimName'));
  const sources = volumes.flatMap((volume) => [volume, ...(isObject(volume['projected']) ? itemsOf(volume['projected'], 'sources') : [])]);
  const containers = [...itemsOf(spec, 'initContainers'), ...itemsOf(spec, 'containers')];
  const values = containers
    .flatMap((container) => itemsOf(container, 'env'))
    .map(({ valueFrom }) => (isObject(valueFrom) ? valueFrom : {}));
  const configMaps = [
    ...sources.flatMap(({ configMap }) => nameIn(configMap)),
    ...values.flatMap(({ configMapKeyRef }) => nameIn(configMapKeyRef)),
    ...containers.flatMap((container) => itemsOf(container, 'envFrom')).flatMap(({ configMapRef }) => nameIn(configMapRef)),
  ];
  return [
    ...[...new Set(claims)].map((name): Reference => ({ kind: 'PersistentVolumeClaim', name })),
    ...[...new Set(configMaps)].map((name): Reference => ({ kind: 'ConfigMap', name })),
  ];
}

function itemsOf(holder: Readonly<Record<string, unknown>>, field: string): readonly Readonly<Record<string, unknown>>[] {
  const items = holder[field];
  return Array.isArray(items) ? items.filter((item) => isObject(item)) : [];
}

/** The name that a reference has; none where pods start without what it names. */
function nameIn(reference: unknown, field = 'name'): readonly string[] {
  if (!isObject(reference) || reference['optional'] === true) return [];
  const name = reference[field];
  return typeof name === 'string' && name !== '' ? [name] : [];
}
