import type { Entry } from './lineup.ts';
import { cpuNanos, cpuTicks, residentBytes } from './process-stats.ts';

/** Resident memory of a contestant, MB; NaN for one without a process. */
export function memoryMbOf({ proxy }: Entry): number {
  return proxy.pid === undefined ? Number.NaN : residentBytes(proxy.pid) / 1e6;
}

/** CPU usage of a contestant over a period. */
export interface CpuUse {
  readonly micros: number;
  /** The kernel's share of the CPU time, %: mostly the network stack. */
  readonly kernelPercent: number;
}

/** Starts a measurement; the returned function ends it. */
export function measureCpu(entry: Entry): () => CpuUse {
  const { pid } = entry.proxy;
  if (pid === undefined) return () => ({ micros: Number.NaN, kernelPercent: Number.NaN });
  const nanosBefore = cpuNanos(pid);
  const ticksBefore = cpuTicks(pid);
  return () => {
    const ticks = cpuTicks(pid);
    const user = ticks.user - ticksBefore.user;
    const kernel = ticks.kernel - ticksBefore.kernel;
    return { micros: (cpuNanos(pid) - nanosBefore) / 1e3, kernelPercent: (100 * kernel) / (user + kernel) };
  };
}
