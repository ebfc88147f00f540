import { fingerprint } from '../../shared/hex.ts';
import { isObject } from '../../shared/json.ts';
import { isMachineId, type MachineId, type MachineSpec } from '../provider.ts';

/** A machine: one pod, or a group of pods that start together. */
export interface MachineRef {
  readonly context: string;
  readonly namespace: string;
  /** The name of its pod, or the beginning of the names of its pods. */
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

/** Leaves room for the rank of a pod in a group. */
const longestBase = 57;

/** The name of a machine's pod: shows its purpose, differs for each key, and contains a group's number of pods. */
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

/** svc's own labels. */
export const ownLabels = {
  /** The machine's base name. */
  machine: 'svc-machine',
  rank: 'svc-rank',
  /** The owner, for `release`. */
  owned: 'svc-owned-by',
} as const;

/** svc's own annotations. */
export const ownAnnotations = {
  nodes: 'svc-nodes',
  /** JSON of the tags as given. */
  tags: 'svc-tags',
  /** Maximum wait for room, s. */
  patience: 'svc-provision-timeout',
} as const;

/** The service or controller with which a machine is released; undefined: none. */
export function ownerOf(tags: MachineSpec['tags']): string | undefined {
  return tags['svc-service-key'];
}

/** The tags that all machines of an owner share. */
export function sharedTags(tags: MachineSpec['tags']): MachineSpec['tags'] {
  const { 'svc-replica': _replica, 'svc-key': _key, ...shared } = tags;
  return shared;
}

/** The object that owns an owner's other objects: removing it removes them. Without owner, each machine has its own. */
export function anchorName(owner: string): string {
  const name = `svc-${owner}`;
  return dnsLabel.test(name) ? name : `svc-${fingerprint(owner)}`;
}

const labelValue = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const labelName =
  /^(?:(?=[a-z0-9.-]{1,253}\/)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** Whether they can be a label. */
export function isLabel(name: string, value: string): boolean {
  return labelName.test(name) && labelValue.test(value);
}

/** Whether it is valid for an annotation. */
export function isAnnotationName(name: string): boolean {
  return labelName.test(name);
}

/** Names like svc's own, which select pods. With such a label a replica could get the requests of all services. */
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
