import type { Entry } from './lineup.ts';
import { cpuNanos, cpuTicks, residentBytes } from './process-stats.ts';

/** Resident memory of a contestant, MB; NaN for one without a process. */
export function memoryMbOf({ proxy }: Entry): number {
  return proxy.pid === undefined ? Number.NaN : residentBytes(proxy.pid) / 1e6;
}

/** CPU time of a contestant over a stretch of time. */
export interface CpuUse {
  readonly micros: number;
  /** Share that the kernel took on its behalf, %: mostly what the network stack costs. */
  readonly kernelPercent: number;
}

/** Begins to measure; the function that it gives ends it. */
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
