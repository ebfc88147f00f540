import { readFileSync } from 'node:fs';

/**
 * How long the main thread of a process has been ready to run but had no processor, ms since its start. This is the
 * second field of /proc/PID/schedstat (Documentation/scheduler/sched-stats.rst of Linux).
 * 0 where the system does not report it.
 */
export function cpuWaitMs(pid: number): number {
  try {
    const waitedNs = Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')[1]);
    return Number.isFinite(waitedNs) ? waitedNs / 1e6 : 0;
  } catch {
    // Not Linux, a kernel without these figures, or the process has ended.
    return 0;
  }
}
