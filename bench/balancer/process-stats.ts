import { readdirSync, readFileSync } from 'node:fs';

/** CPU time of all threads of a process so far, ns: user and system together, as counted by the kernel. */
export function cpuNanos(pid: number): number {
  let nanos = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) nanos += threadNanos(pid, thread);
  return nanos;
}

/** `schedstat` counts nanoseconds; `stat` counts only ticks of 10 ms. */
function threadNanos(pid: number, thread: string): number {
  const [onCpu] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ');
  return Number(onCpu);
}

/** CPU time of a process so far, user and kernel, in ticks: coarse, but precise enough for a share. */
export function cpuTicks(pid: number): { readonly user: number; readonly kernel: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The process name, in parentheses, may contain spaces. The third field comes after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { user: Number(fields[11]), kernel: Number(fields[12]) };
}

/** Resident memory of a process, bytes. */
export function residentBytes(pid: number): number {
  const [, kibibytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kibibytes) * 1_024;
}

/** The child processes of `pid`. */
export function childrenOf(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return text === '' ? [] : text.split(' ').map(Number);
}
