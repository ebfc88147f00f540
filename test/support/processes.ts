import { globSync, readFileSync } from 'node:fs';
import { processesOf, type OwnedProcess } from './leaks.ts';
import { signalAll } from './signal-all.ts';

/** Processes of a home whose command line matches, oldest first. */
function findProcesses(home: string, command: RegExp): readonly OwnedProcess[] {
  return processesOf(home)
    .filter((one) => command.test(one.command))
    .toSorted((a, b) => a.pid - b.pid);
}

/** Kills processes the hard way; gives back how many there were. */
export function killHard(processes: readonly OwnedProcess[]): number {
  signalAll(
    processes.map(({ pid }) => pid),
    'SIGKILL',
  );
  return processes.length;
}

/** Programs that replicas run (`run`), without the shells and helpers around them. */
export const programsOf = (home: string, program: RegExp): readonly OwnedProcess[] =>
  findProcesses(home, program).filter(({ pid }) => !isWrapper(pid));

/** Shells, `unshare` and the like carry the program's name in their arguments too. */
function isWrapper(pid: number): boolean {
  try {
    return /^(sh|bash|dash|unshare|setpriv|setsid|nsenter|bwrap|podman)$/.test(readFileSync(`/proc/${pid}/comm`, 'utf8').trim());
  } catch {
    // Gone: no program any more.
    return true;
  }
}

/** The daemon's pid, from its process list: no command has to be run for it. */
export const daemonOf = (home: string): readonly OwnedProcess[] => findProcesses(home, /src\/controller\/main\.ts/);
export const reconcilersOf = (home: string): readonly OwnedProcess[] => findProcesses(home, /src\/controller\/service\/main\.ts/);
export const balancersOf = (home: string): readonly OwnedProcess[] => findProcesses(home, /src\/balancer\/main\.ts/);

/** Folders of machines of the local provider that exist. */
export const machinesOf = (home: string): readonly string[] => globSync(`${home}/local/machines/*`);
