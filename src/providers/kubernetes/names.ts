import { fingerprint } from '../../shared/hex.ts';
import { isObject } from '../../shared/json.ts';
import { isMachineId, type MachineId, type MachineSpec } from '../provider.ts';

/** A machine: one pod, or a group of them that start together. */
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

/** Maximum length of a base, in characters; leaves room for the rank of a pod in a group. */
const longestBase = 57;

/**
 * The name of a machine's pod. It shows users the pod's purpose and differs for each key. The name of a group includes
 * its number of pods.
 */
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

/** The names of the pods of a machine, in the order of their ranks: never empty. */
export function podNames(base: string): readonly string[] {
  const nodes = Number(/-x(\d+)$/.exec(base)?.[1] ?? 1);
  return nodes === 1 ? [base] : Array.from({ length: nodes }, (_, rank) => `${base}-${rank}`);
}

/** The name of the first pod of a machine. */
export function firstPod(base: string): string {
  return podNames(base)[0] ?? base;
}

/** svc's own labels and annotations. */
export const ownLabels = {
  /** The base of the machine's name. */
  machine: 'svc-machine',
  /** The pod's rank in its machine. */
  rank: 'svc-rank',
  /** The owner, for `release`: see `ownerOf`. */
  owned: 'svc-owned-by',
} as const;

/** svc's own annotations. */
export const ownAnnotations = {
  /** The number of pods of the machine. */
  nodes: 'svc-nodes',
  /** The tags as given, as JSON. */
  tags: 'svc-tags',
  /** Maximum wait for room, s. */
  patience: 'svc-provision-timeout',
} as const;

/**
 * The owner of a machine, with which it is released: a service or a controller. Undefined for a machine without an
 * owner.
 */
export function ownerOf(tags: MachineSpec['tags']): string | undefined {
  return tags['svc-service-key'];
}

/** The tags that all of an owner's machines have: without those that differ between replicas. */
export function sharedTags(tags: MachineSpec['tags']): MachineSpec['tags'] {
  const { 'svc-replica': _replica, 'svc-key': _key, ...shared } = tags;
  return shared;
}

/**
 * The name of the object that owns all others of an owner: removing it removes them. A machine without an owner has an
 * anchor of the machine's name, which is removed with it.
 */
export function anchorName(owner: string): string {
  const name = `svc-${owner}`;
  return dnsLabel.test(name) ? name : `svc-${fingerprint(owner)}`;
}

const labelValue = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const labelName =
  /^(?:(?=[a-z0-9.-]{1,253}\/)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** Whether a name and a value can be a label. */
export function isLabel(name: string, value: string): boolean {
  return labelName.test(name) && labelValue.test(value);
}

/** Whether a name is valid for an annotation. */
export function isAnnotationName(name: string): boolean {
  return labelName.test(name);
}

/**
 * Whether a label's name is like those that select pods, including edge proxies. With such a label a replica could get
 * the requests of all services.
 */
export function isOwnName(name: string): boolean {
  return name.startsWith('svc-');
}

/** A tag's value as a label: as it is, or a digest of what labels cannot hold. */
export function tagLabel(value: string): string {
  return labelValue.test(value) && value !== '' ? value : `x${fingerprint(value)}`;
}

/** The entries of a map whose values are text; none for anything else. */
export function textEntries(map: unknown): Readonly<Record<string, string>> {
  if (!isObject(map)) return {};
  return Object.fromEntries(Object.entries(map).filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}
