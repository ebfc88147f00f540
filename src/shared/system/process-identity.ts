import { readFileSync, readlinkSync } from 'node:fs';
import { envVar } from '../env.ts';
import { isObject } from '../json.ts';
import { readJsonFile } from './files.ts';

/** Identifies one process permanently. Pids are reused, so the start time and the boot are stored too. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot, field 22 of /proc/PID/stat (proc(5)). */
  readonly startTicks: number;
  readonly bootId: string;
  /** The pid namespace; absent in older records. Containers of one machine share its boot but have separate pids. */
  readonly space?: string;
}

let cachedBootId: string | undefined;

/** The id of this boot of the machine; empty where the system does not report it. */
export function bootId(): string {
  if (cachedBootId !== undefined) return cachedBootId;
  try {
    cachedBootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    // Not Linux: pids are then compared by start time alone.
    cachedBootId = '';
  }
  return cachedBootId;
}

let cachedSpace: string | undefined;

/** The pid namespace of this process, or SVC_NODE_ID where the system does not report it. */
export function pidSpace(): string {
  cachedSpace ??= envVar('SVC_NODE_ID') ?? readPidNamespace();
  return cachedSpace;
}

function readPidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    // Not Linux: there is only one pid namespace.
    return '';
  }
}

/** The start time from the text of /proc/PID/stat, in clock ticks since boot; undefined when only a zombie is left. */
export function parseStartTicks(stat: string): number | undefined {
  // The command name in parentheses may contain spaces and parentheses: fields count after the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  // The first thread may be a zombie while other threads still end and hold ports and memory.
  const isOver = state === 'X' || (state === 'Z' && Number(fields[17]) <= 1);
  return isOver ? undefined : Number(fields[19]);
}

/** Whether a stored value is an identity. */
export function isProcessIdentity(value: unknown): value is ProcessIdentity {
  return (
    isObject(value) &&
    typeof value['pid'] === 'number' &&
    typeof value['startTicks'] === 'number' &&
    typeof value['bootId'] === 'string' &&
    (value['space'] === undefined || typeof value['space'] === 'string')
  );
}

/** The identity in a JSON file; undefined without a file or a valid one. Throws Node's error if it cannot be read. */
export function readIdentity(path: string): ProcessIdentity | undefined {
  const value = readJsonFile(path)?.value;
  return isProcessIdentity(value) ? value : undefined;
}

/** The identity of a running process; undefined when there is none, or only its zombie is left. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  const startTicks = parseStartTicks(stat);
  return startTicks === undefined ? undefined : { pid, startTicks, bootId: bootId(), space: pidSpace() };
}

/** Whether two identities are of one process. */
export function sameProcess(a: ProcessIdentity, b: ProcessIdentity): boolean {
  const isOneSpace = a.space === undefined || b.space === undefined || a.space === b.space;
  return a.pid === b.pid && a.startTicks === b.startTicks && a.bootId === b.bootId && isOneSpace;
}

/** Whether the identified process still runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  const now = identifyProcess(identity.pid);
  return now !== undefined && sameProcess(now, identity);
}

/** Whether a signal (SIGSTOP, SIGTSTP) has stopped the process; false while a debugger holds it, and without /proc. */
export function isStopped(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat[stat.lastIndexOf(')') + 2] === 'T';
  } catch {
    return false;
  }
}

/** Sends a signal to the identified process; false when it has already ended. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false;
  try {
    process.kill(identity.pid, signal);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}

/**
 * How long the main thread was ready to run but had no processor, ms since its start; 0 where not reported. Second
 * field of /proc/PID/schedstat (Documentation/scheduler/sched-stats.rst of Linux).
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
