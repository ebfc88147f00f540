import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { processesOf, type OwnedProcess } from './leaks.ts';
import { signalAll } from './signal-all.ts';

/** Processes of a home whose command line matches, oldest first. */
function findProcesses(home: string, command: RegExp): readonly OwnedProcess[] {
  return processesOf(home)
    .filter((one) => command.test(one.command) && !isJustForked(one.pid))
    .toSorted((a, b) => a.pid - b.pid);
}

/**
 * Whether a process has been forked and has not begun its own program yet: until then it looks in all like its parent, down to where its arguments are in
 * memory, which differs between any two programs that were begun.
 */
function isJustForked(pid: number): boolean {
  const own = readStat(pid);
  const parent = readStat(own.parent);
  return own.argumentsAt !== 0n && own.argumentsAt === parent.argumentsAt;
}

/** The parent of a process and the address of its arguments; zeros for one that is gone, or of which the system does not tell. */
function readStat(pid: number): { readonly parent: number; readonly argumentsAt: bigint } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The fields 4 and 48 (proc(5)), counted after the command's name in parentheses, which is the second.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { parent: Number(fields[1]), argumentsAt: BigInt(fields[45] ?? 0) };
  } catch {
    return { parent: 0, argumentsAt: 0n };
  }
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

/**
 * Makes the file `go` for which programs of a test wait, as in `until [ -e go ]; do sleep 0.1; done`, in each machine on which they were told to start. A pause
 * instead may be over before a test on a busy machine has looked.
 */
export function letGo(home: string): void {
  for (const machine of machinesOf(home)) writeFileSync(`${machine}/base/workdir/go`, '');
}
