import type { Amount } from '../../domain/task.ts';

/** Resources that one machine reserves; 0 for a machine that shares the SSH host's resources. */
export interface HostShare {
  readonly cpus: number;
  readonly memoryGb: number;
}

const shared = 'shared host';

/** The share as an instance type: `4 CPUs, 16 GB`, `4 CPUs`, `16 GB` or `shared host`. */
export function shareName({ cpus, memoryGb }: HostShare): string {
  const parts = [...(cpus > 0 ? [`${cpus} CPUs`] : []), ...(memoryGb > 0 ? [`${memoryGb} GB`] : [])];
  return parts.join(', ') || shared;
}

/** The inverse of `shareName`; undefined for any other text. */
export function readShare(name: string): HostShare | undefined {
  if (name === shared) return { cpus: 0, memoryGb: 0 };
  const match = /^(?:([\d.]+) CPUs)?(?:, )?(?:([\d.]+) GB)?$/.exec(name);
  if (match === null || name === '') return undefined;
  return { cpus: Number(match[1] ?? 0), memoryGb: Number(match[2] ?? 0) };
}

/** Amounts that the file does not set are shared, as on any computer. */
export function requestedShare(resources: { readonly cpus: Amount | undefined; readonly memory: Amount | undefined }): HostShare {
  return { cpus: resources.cpus?.value ?? 0, memoryGb: resources.memory?.value ?? 0 };
}

/** The part of an SSH host that is not reserved. */
export function freeShare(whole: HostShare, machines: readonly HostShare[]): HostShare {
  const left = (of: keyof HostShare): number =>
    Math.max(0, Math.round((whole[of] - machines.reduce((sum, machine) => sum + machine[of], 0)) * 10) / 10);
  return { cpus: left('cpus'), memoryGb: left('memoryGb') };
}

const describeLeft = (left: number, all: number, unit: string): string =>
  left === all ? `has ${all} ${unit}` : `has ${left} of ${all} ${unit} free`;

/** A clause; undefined when the share is available. */
export function whyNoShare(requested: HostShare, whole: HostShare, machines: readonly HostShare[]): string | undefined {
  const free = freeShare(whole, machines);
  if (requested.cpus > free.cpus) return `${describeLeft(free.cpus, whole.cpus, 'CPUs')}, ${requested.cpus} requested`;
  if (requested.memoryGb > free.memoryGb)
    return `${describeLeft(free.memoryGb, whole.memoryGb, 'GB of memory')}, ${requested.memoryGb} requested`;
  return undefined;
}
