import type { Entry } from './lineup.ts';
import { cpuNanos, residentBytes } from './process-stats.ts';

/** CPU time that a contestant has used so far, ns; NaN for one without a process. */
export function cpuNanosOf({ proxy }: Entry): number {
  return proxy.pid === undefined ? Number.NaN : cpuNanos(proxy.pid);
}

/** Resident memory of a contestant, MB; NaN for one without a process. */
export function memoryMbOf({ proxy }: Entry): number {
  return proxy.pid === undefined ? Number.NaN : residentBytes(proxy.pid) / 1e6;
}
