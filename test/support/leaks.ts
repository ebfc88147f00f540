import { globSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { homePaths } from '../../src/shared/paths.ts';
import { signalAll } from './signal-all.ts';
import { waitFor } from './wait-for.ts';

/** A process that belongs to a home folder. */
export interface OwnedProcess {
  readonly pid: number;
  readonly command: string;
}

function readProc(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    // The process ended, or belongs to another user.
    return '';
  }
}

function workingDirectory(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return '';
  }
}

/** The command line of a process; empty when it has ended. */
export const commandOf = (pid: number | string): string => readProc(String(pid), 'cmdline').replaceAll('\0', ' ').trim();

/**
 * Returns every living process whose environment, arguments or working folder contain the home, except for the calling
 * process.
 */
export function processesOf(home: string): readonly OwnedProcess[] {
  // A path below the home matches, a longer name does not.
  const mention = new RegExp(`${home.replaceAll('.', '\\.')}(?![\\w.-])`);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      const command = commandOf(pid);
      const sources = [readProc(pid, 'environ'), command, workingDirectory(pid)];
      // A zombie has none of these.
      return sources.some((text) => mention.test(text)) ? [{ pid: Number(pid), command }] : [];
    });
}

/** Returns the living processes of a process group, from /proc: Debian's base image has no `ps`. */
export function groupOf(group: number | undefined): readonly string[] {
  return readdirSync('/proc')
    .map((pid) => readProc(pid, 'stat'))
    .filter((stat) => {
      // Fields 3 (state) and 5 (process group) of proc(5); the command's name before them may contain spaces.
      const [state, , processGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return processGroup === String(group) && state !== 'Z';
    });
}

/** Lists the remains of a home without services: processes, mounts, sockets, one line each. */
function leaksOf(home: string): readonly string[] {
  const { runtimeDir } = homePaths(home, process.getuid?.() ?? 0);
  const mentions = (line: string): boolean => line.includes(home) || line.includes(runtimeDir);
  const lines = (file: string): readonly string[] => readFileSync(file, 'utf8').split('\n').filter(mentions);
  return [
    ...processesOf(home).map(({ pid, command }) => `process ${pid}: ${command}`),
    ...lines('/proc/self/mountinfo').map((line) => `mount: ${line}`),
    ...lines('/proc/net/unix').map((line) => `open socket: ${line}`),
    ...globSync([`${home}/**/*.sock`, `${runtimeDir}/**/*.sock`]).map((path) => `socket file: ${path}`),
  ];
}

/** Waits until nothing of the home remains; fails with the remains. */
export async function expectNoLeaks(home: string): Promise<void> {
  const isClean = (): boolean => leaksOf(home).length === 0;
  await waitFor('everything of the home to be gone', isClean, { describe: () => leaksOf(home) });
}

/** Kills all processes of a home by pid, until no new one appears: the cleanup after a test. */
export async function killProcessesOf(home: string): Promise<void> {
  const killed = (): boolean => {
    const found = processesOf(home);
    signalAll(
      found.map(({ pid }) => pid),
      'SIGKILL',
    );
    return found.length === 0;
  };
  await waitFor('the killed processes to be gone', killed, { describe: () => processesOf(home) });
}
