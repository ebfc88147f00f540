import { fingerprint } from '../../shared/hex.ts';
import { isObject } from '../../shared/json.ts';
import { isMachineId, type MachineId, type MachineSpec } from '../provider.ts';

/** A machine: one pod, or a group of pods that start together. */
export interface MachineRef {
  readonly context: string;
  readonly namespace: string;
  /** The name of its pod; of a group, the beginning of its pods' names. */
  readonly base: string;
}

/** `<context>/<namespace>/<base>`; only a context may have slashes. */
export function machineIdOf({ context, namespace, base }: MachineRef): MachineId {
  const id = `${context}/${namespace}/${base}`;
  if (!isMachineId(id)) throw new TypeError('a machine has a name');
  return id;
}

/** The inverse of `machineIdOf`; undefined for an id of another form. */
export function readMachineId(id: string): MachineRef | undefined {
  const parts = id.split('/');
  const base = parts.pop() ?? '';
  const namespace = parts.pop() ?? '';
  const context = parts.join('/');
  return context === '' || !dnsLabel.test(namespace) || !dnsLabel.test(base) ? undefined : { context, namespace, base };
}

const dnsLabel = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** In characters. Leaves room for the rank of a pod in a group. */
const longestBase = 57;

/** The base of a machine's name. It shows users the machine's purpose, and differs for each key. */
export function podBase(tags: MachineSpec['tags'], key: string, nodes: number): string {
  const hash = `${fingerprint(key).slice(0, 10)}${nodes === 1 ? '' : `-x${nodes}`}`;
  const said = [tags['svc-service'] ?? tags['svc-cluster'] ?? '', tags['svc-replica'] ?? ''].filter((part) => part !== '').join('-');
  const plain = said
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, longestBase - 'svc--'.length - hash.length)
    .replaceAll(/^-+|-+$/g, '');
  return plain === '' ? `svc-${hash}` : `svc-${plain}-${hash}`;
}

/** The names of a machine's pods, by rank; never empty. */
export function podNames(base: string): readonly string[] {
  const nodes = Number(/-x(\d+)$/.exec(base)?.[1] ?? 1);
  return nodes === 1 ? [base] : Array.from({ length: nodes }, (_, rank) => `${base}-${rank}`);
}

/** Name of a machine's first pod. */
export function firstPod(base: string): string {
  return podNames(base)[0] ?? base;
}

/** Names of svc's own labels. */
export const ownLabels = {
  machine: 'svc-machine',
  rank: 'svc-rank',
  /** See `ownerOf`. */
  owned: 'svc-owned-by',
} as const;

/** Names of svc's own annotations. */
export const ownAnnotations = {
  nodes: 'svc-nodes',
  /** JSON of the tags as given. */
  tags: 'svc-tags',
  /** Maximum wait for room, s. */
  patience: 'svc-provision-timeout',
} as const;

/** Type of the pods' condition that reports the readiness of their replica. */
export const readinessCondition = 'svc.dev/ready';

/** The owner with which a machine is released: a service or a controller. */
export function ownerOf(tags: MachineSpec['tags']): string | undefined {
  return tags['svc-service-key'];
}

/** The tags that all machines of an owner share. */
export function sharedTags(tags: MachineSpec['tags']): MachineSpec['tags'] {
  const { 'svc-replica': _replica, 'svc-key': _key, ...shared } = tags;
  return shared;
}

/** Removing this object removes an owner's other objects. Without an owner, a machine has an anchor of its own name. */
export function anchorName(owner: string): string {
  const name = `svc-${owner}`;
  return dnsLabel.test(name) ? name : `svc-${fingerprint(owner)}`;
}

const labelValue = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const labelName =
  /^(?:(?=[a-z0-9.-]{1,253}\/)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** Whether Kubernetes accepts a label. */
export function isLabel(name: string, value: string): boolean {
  return labelName.test(name) && labelValue.test(value);
}

/** Whether Kubernetes accepts an annotation's name. */
export function isAnnotationName(name: string): boolean {
  return labelName.test(name);
}

/** Labels with such a name select pods: with one, a replica could get the requests of all services. */
export function isOwnName(name: string): boolean {
  return name.startsWith('svc-');
}

/** A tag's value as a label, or a digest of it where labels cannot hold it. */
export function tagLabel(value: string): string {
  return labelValue.test(value) && value !== '' ? value : `x${fingerprint(value)}`;
}

/** The entries whose values are text; none for anything but a map. */
export function textEntries(map: unknown): Readonly<Record<string, string>> {
  if (!isObject(map)) return {};
  return Object.fromEntries(Object.entries(map).filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}
