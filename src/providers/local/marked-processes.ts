import { readFile, readdir } from 'node:fs/promises';
import { getOrAdd } from '../../shared/get-or-add.ts';
import { type ProcessIdentity, identifyProcess } from '../../shared/system/process-identity.ts';
import { cookieVariable } from '../machine-environment.ts';

/** The living processes by the machine's cookie in their initial environment. */
type Marked = ReadonlyMap<string, readonly ProcessIdentity[]>;

const readsAtOnce = 32;

let running: Promise<unknown> = Promise.resolve();
let next: Promise<Marked> | undefined;

/**
 * The living processes of the machine with this cookie. All callers that wait at the same time share one scan of the
 * computer's processes: otherwise the cost of removing many machines would grow with the square of their number. A scan
 * in progress has passed over some processes, so a caller always gets one that began after its call.
 */
export async function processesWith(cookie: string): Promise<readonly ProcessIdentity[]> {
  next ??= running.then(() => {
    next = undefined;
    const scan = scanProcesses();
    running = scan.catch(() => undefined);
    return scan;
  });
  return (await next).get(cookie) ?? [];
}

async function scanProcesses(): Promise<Marked> {
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const marked = new Map<string, ProcessIdentity[]>();
  for (let first = 0; first < names.length; first += readsAtOnce) {
    const group = names.slice(first, first + readsAtOnce);
    for (const found of await Promise.all(group.map((name) => readMark(Number(name)))))
      if (found !== undefined) getOrAdd(marked, found.cookie, () => []).push(found.identity);
  }
  return marked;
}

const prefix = `${cookieVariable}=`;

async function readMark(pid: number): Promise<{ readonly cookie: string; readonly identity: ProcessIdentity } | undefined> {
  // Comes first: if the pid is reused before the read, signals to this identity fail.
  const identity = identifyProcess(pid);
  if (identity === undefined) return undefined;
  try {
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1');
    const variable = environment.split('\0').find((one) => one.startsWith(prefix));
    return variable === undefined ? undefined : { cookie: variable.slice(prefix.length), identity };
  } catch {
    // It has ended, or belongs to another user, so svc did not start it.
    return undefined;
  }
}
