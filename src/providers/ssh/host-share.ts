import type { Amount } from '../../domain/task.ts';

/** What of a host is set aside for one machine; 0 where it takes part in what there is. */
export interface HostShare {
  readonly cpus: number;
  readonly memoryGb: number;
}

const shared = 'shared host';

/** The share as the name of a kind of machine: `4 CPUs, 16 GB`, `4 CPUs`, `16 GB` or `shared host`. */
export function shareName({ cpus, memoryGb }: HostShare): string {
  const parts = [...(cpus > 0 ? [`${cpus} CPUs`] : []), ...(memoryGb > 0 ? [`${memoryGb} GB`] : [])];
  return parts.join(', ') || shared;
}

/** The inverse of `shareName`; undefined for what is no such name. */
export function readShare(name: string): HostShare | undefined {
  if (name === shared) return { cpus: 0, memoryGb: 0 };
  const match = /^(?:([\d.]+) CPUs)?(?:, )?(?:([\d.]+) GB)?$/.exec(name);
  if (match === null || name === '') return undefined;
  return { cpus: Number(match[1] ?? 0), memoryGb: Number(match[2] ?? 0) };
}

/** What is set aside for who asks for so much: what a file does not mention is shared, as on any computer of one's own. */
export function wantedShare(resources: { readonly cpus: Amount | undefined; readonly memory: Amount | undefined }): HostShare {
  return { cpus: resources.cpus?.value ?? 0, memoryGb: resources.memory?.value ?? 0 };
}

/** What of a host is not set aside. */
export function freeShare(whole: HostShare, machines: readonly HostShare[]): HostShare {
  const left = (of: keyof HostShare): number =>
    Math.max(0, Math.round((whole[of] - machines.reduce((sum, machine) => sum + machine[of], 0)) * 10) / 10);
  return { cpus: left('cpus'), memoryGb: left('memoryGb') };
}

const describeLeft = (left: number, all: number, unit: string): string =>
  left === all ? `has ${all} ${unit}` : `has ${left} of ${all} ${unit} free`;

/** Why a share is not to be had, as a clause; undefined when it is. */
export function whyNoShare(wanted: HostShare, whole: HostShare, machines: readonly HostShare[]): string | undefined {
  const free = freeShare(whole, machines);
  if (wanted.cpus > free.cpus) return `${describeLeft(free.cpus, whole.cpus, 'CPUs')}, ${wanted.cpus} wanted`;
  if (wanted.memoryGb > free.memoryGb) return `${describeLeft(free.memoryGb, whole.memoryGb, 'GB of memory')}, ${wanted.memoryGb} wanted`;
  return undefined;
}
