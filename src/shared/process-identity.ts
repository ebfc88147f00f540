import { readFileSync, readlinkSync } from 'node:fs';
import { envVar } from './env.ts';
import { isObject } from './is-object.ts';

/** Names one process for ever: a pid alone is reused, so its start time and the boot are kept with it. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot, field 22 of /proc/PID/stat (proc(5)). */
  readonly startTicks: number;
  readonly bootId: string;
  /** Where its pid means something; absent in older records. Containers of one machine share its boot and have pids of their own. */
  readonly space?: string;
}

let cachedBootId: string | undefined;

/** The id of this boot of the machine; empty where the system does not tell. */
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

/** Among whose processes pids are unique: the namespace of this process, or what SVC_NODE_ID says where the system does not tell. */
export function pidSpace(): string {
  cachedSpace ??= envVar('SVC_NODE_ID') ?? readPidNamespace();
  return cachedSpace;
}

function readPidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    // Not Linux: there is one.
    return '';
  }
}

/** The start time in the text of /proc/PID/stat, in clock ticks since boot; undefined when only the process's zombie is left. */
export function parseStartTicks(stat: string): number | undefined {
  // The command name is in parentheses and may itself hold spaces and parentheses: fields are counted after the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  // The first thread may be a zombie while others still end, which holds ports and memory.
  const isOver = state === 'X' || (state === 'Z' && Number(fields[17]) <= 1);
  return isOver ? undefined : Number(fields[19]);
}

/** Whether a value that was stored is an identity. */
export function isProcessIdentity(value: unknown): value is ProcessIdentity {
  return (
    isObject(value) &&
    typeof value['pid'] === 'number' &&
    typeof value['startTicks'] === 'number' &&
    typeof value['bootId'] === 'string' &&
    (value['space'] === undefined || typeof value['space'] === 'string')
  );
}

/** Undefined when there is no such process, or only its zombie is left. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    // Gone, or never there: both mean "no such process".
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

/** Whether the very process that was identified still runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  const now = identifyProcess(identity.pid);
  return now !== undefined && sameProcess(now, identity);
}

/** Sends a signal to that very process; false when it is gone already. */
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
