import type { Entry } from './lineup.ts';
import { cpuNanos, residentBytes } from './process-stats.ts';

/** CPU time that a contestant has used so far, ns; 0 for one without a process. */
export function cpuNanosOf({ proxy }: Entry): number {
  return proxy.pid === undefined ? 0 : cpuNanos(proxy.pid);
}

/** Resident memory of a contestant, MB; 0 for one without a process. */
export function memoryMbOf({ proxy }: Entry): number {
  return proxy.pid === undefined ? 0 : residentBytes(proxy.pid) / 1e6;
}
