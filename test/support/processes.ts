import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { entryPath, type ProgramEntry } from '../../src/shared/program-files.ts';
import { commandOf, processesOf, type OwnedProcess } from './leaks.ts';
import { signalAll } from './signal-all.ts';

/** Processes of a home whose command line matches, oldest first. */
function findProcesses(home: string, command: RegExp): readonly OwnedProcess[] {
  return processesOf(home)
    .filter((one) => command.test(one.command) && isItsOwn(one))
    .toSorted((a, b) => a.pid - b.pid);
}

/** Whether the command line is of the process itself. One that has executed its program since then has another now. */
const isItsOwn = ({ pid, command }: OwnedProcess): boolean => !isJustForked(pid) && commandOf(pid) === command;

/**
 * Whether a process was forked and has not yet executed its own program. Until then it looks like its parent, including
 * the memory address of its arguments, which differs between any two executed programs.
 */
function isJustForked(pid: number): boolean {
  const own = readStat(pid);
  const parent = readStat(own.parent);
  return own.argumentsAt !== 0n && own.argumentsAt === parent.argumentsAt;
}

/**
 * The parent of a process and the address of its arguments; zeros for a process that has ended or whose data is hidden.
 */
function readStat(pid: number): { readonly parent: number; readonly argumentsAt: bigint } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // Fields 4 and 48 (proc(5)), counted after the command's name in parentheses, which is field 2.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { parent: Number(fields[1]), argumentsAt: BigInt(fields[45] ?? 0) };
  } catch {
    return { parent: 0, argumentsAt: 0n };
  }
}

/** Kills processes with SIGKILL; returns their number. */
export function killHard(processes: readonly OwnedProcess[]): number {
  signalAll(
    processes.map(({ pid }) => pid),
    'SIGKILL',
  );
  return processes.length;
}

/** Programs of replicas (`run`), without the shells and helpers around them. */
export const programsOf = (home: string, program: RegExp): readonly OwnedProcess[] =>
  findProcesses(home, program).filter(({ pid }) => !isWrapper(pid));

/** Shells, `unshare` and the like have the program's name in their arguments too. */
function isWrapper(pid: number): boolean {
  try {
    return /^(sh|bash|dash|unshare|setpriv|setsid|nsenter|bwrap|podman)$/.test(readFileSync(`/proc/${pid}/comm`, 'utf8').trim());
  } catch {
    // The process has ended.
    return true;
  }
}

/** Matches the file of an entry in a bundle; the tests' controllers run from one. */
const entryPattern = (entry: ProgramEntry): RegExp => new RegExp(`/${entryPath(entry, true).replaceAll('.', '\\.')}`);

/** The daemon's pid, from the process list, without running a command. */
export const daemonOf = (home: string): readonly OwnedProcess[] => findProcesses(home, entryPattern('controller/main'));
export const reconcilersOf = (home: string): readonly OwnedProcess[] => findProcesses(home, entryPattern('controller/service/main'));
export const balancersOf = (home: string): readonly OwnedProcess[] =>
  findProcesses(home, entryPattern('balancer/main')).filter(({ pid }) => !isWrapper(pid));

/** Kill them before their balancers, as when a machine is lost: otherwise they become the next balancers. */
export const standbysOf = (home: string): readonly OwnedProcess[] =>
  findProcesses(home, entryPattern('balancer/main')).filter(({ pid }) => isWrapper(pid));

/** Folders of existing machines of the local provider. */
export const machinesOf = (home: string): readonly string[] => globSync(`${home}/local/machines/*`);

/**
 * Creates the file `go`, for which test programs wait, as in `until [ -e go ]; do sleep 0.1; done`. Creates it in each
 * machine that has started its program. A fixed pause could end before a test on a busy machine has checked.
 */
export function letGo(home: string): void {
  for (const machine of machinesOf(home)) writeFileSync(`${machine}/base/workdir/go`, '');
}
