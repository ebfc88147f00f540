import { readdir, readFile } from 'node:fs/promises';
import { identifyProcess, signalProcess, type ProcessIdentity } from '../../shared/process-identity.ts';

/** Processes whose environment is read at a time. */
const readsAtOnce = 32;

/** Every living process but this one whose environment, as it was when the program was started, has the given variable. */
async function processesWith(variable: string): Promise<readonly ProcessIdentity[]> {
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const found: ProcessIdentity[] = [];
  for (let first = 0; first < names.length; first += readsAtOnce) {
    const group = names.slice(first, first + readsAtOnce);
    found.push(...(await Promise.all(group.map((name) => withVariable(Number(name), variable)))).filter((one) => one !== undefined));
  }
  return found;
}

async function withVariable(pid: number, variable: string): Promise<ProcessIdentity | undefined> {
  // Identified before its environment is read: a pid that changes hands in between is then another process when it is signalled.
  const identity = identifyProcess(pid);
  if (identity === undefined) return undefined;
  try {
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1');
    return environment.split('\0').includes(variable) ? identity : undefined;
  } catch {
    // Ended meanwhile, or another user's, which we could not have started.
    return undefined;
  }
}

/**
 * Ends every process that carries the variable: all are stopped until no new one shows up, so that none can fork away, then killed. Returns whom it
 * met: the kernel takes its time to end them, and one that got away, or may not be signalled, is met again by the next call.
 */
export async function killProcessesWith(variable: string): Promise<readonly ProcessIdentity[]> {
  const stopped = new Map<number, ProcessIdentity>();
  for (;;) {
    const fresh = (await processesWith(variable)).filter(({ pid, startTicks }) => stopped.get(pid)?.startTicks !== startTicks);
    if (fresh.length === 0) break;
    for (const identity of fresh) {
      stopped.set(identity.pid, identity);
      signalIfAllowed(identity, 'SIGSTOP');
    }
  }
  for (const identity of stopped.values()) signalIfAllowed(identity, 'SIGKILL');
  return [...stopped.values()];
}

/** A process that became another user's (through sudo) cannot be signalled; it is found again, and then reported. */
function signalIfAllowed(identity: ProcessIdentity, signal: NodeJS.Signals): void {
  try {
    signalProcess(identity, signal);
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'EPERM') throw error;
  }
}
