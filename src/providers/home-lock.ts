import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { SvcError } from '../shared/errors.ts';

const queues = new Map<string, Promise<unknown>>();

/**
 * Excludes other processes of this user under the same lock file. A helper process holds the kernel's lock (flock(2))
 * and ends with this process: even a crash releases the lock.
 */
export async function withHomeLock<Result>(file: string, work: () => Result | Promise<Result>): Promise<Result> {
  const before = queues.get(file) ?? Promise.resolve();
  const mine = before.then(() => locked(file, work));
  // Calls of this process form a queue, so that only one helper exists at a time.
  const settled = mine.catch(() => undefined);
  queues.set(file, settled);
  try {
    return await mine;
  } finally {
    if (queues.get(file) === settled) queues.delete(file);
  }
}

async function locked<Result>(file: string, work: () => Result | Promise<Result>): Promise<Result> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const holder = spawn('flock', [file, 'sh', '-c', 'echo locked && exec cat'], { stdio: ['pipe', 'pipe', 'ignore'] });
  holder.stdin.on('error', () => undefined);
  try {
    await new Promise<void>((resolve, reject) => {
      const fail = (): void =>
        reject(new SvcError('SVC_INTERNAL', `The lock ${file} cannot be taken.`, { hint: 'Install util-linux, which has flock.' }));
      holder.once('error', fail);
      holder.once('exit', fail);
      holder.stdout.once('data', () => resolve());
    });
    return await work();
  } finally {
    holder.stdin.end();
  }
}
