import { globSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
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
    // Ended meanwhile, or another user's: not ours either way.
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

/** Every living process that carries the home in its environment or arguments, or works below it. The calling process is left out. */
export function processesOf(home: string): readonly OwnedProcess[] {
  // The path may have more after it, but no longer name may begin with it.
  const mention = new RegExp(`${home.replaceAll('.', '\\.')}(?![\\w.-])`);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      const args = readProc(pid, 'cmdline');
      const places = [readProc(pid, 'environ'), args, workingDirectory(pid)];
      // A zombie has none of these.
      return places.some((text) => mention.test(text)) ? [{ pid: Number(pid), command: args.replaceAll('\0', ' ').trim() }] : [];
    });
}

/** What is left of a home that should have nothing running any more: processes, mounts, sockets, one line each. */
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

/** Waits until nothing of the home is left; fails with what still is. */
export async function expectNoLeaks(home: string, timeoutMs = 20_000): Promise<void> {
  await waitFor('everything of the home to be gone', () => leaksOf(home).length === 0, { timeoutMs, describe: () => leaksOf(home) });
}

/** Ends every process of a home, by pid, until none is new: for cleaning up after a test, whatever became of it. */
export async function killProcessesOf(home: string): Promise<void> {
  for (let round = 0; round < 100; round += 1) {
    const found = processesOf(home);
    if (found.length === 0) return;
    signalAll(
      found.map(({ pid }) => pid),
      'SIGKILL',
    );
    await sleep(50);
  }
  throw new Error(`processes of ${home} survive SIGKILL: ${JSON.stringify(processesOf(home))}`);
}
