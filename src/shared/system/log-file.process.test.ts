import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fillDisk, withSmallDisk } from '../../../test/support/small-disk.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { appendToLog, rotateLog } from './log-file.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-t-'));
  path = join(folder, 'x.log');
});
afterEach(() => rmSync(folder, { recursive: true }));

test('a log at its limit keeps its newest part in PATH.1', () => {
  writeFileSync(path, 'one\ntwo\n');
  const { ino } = statSync(path);
  rotateLog(path, 9);
  expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n');
  rotateLog(path, 4);
  expect([readFileSync(path, 'utf8'), readFileSync(`${path}.1`, 'utf8')]).toEqual(['', 'two\n']);
  expect(statSync(path).ino).toBe(ino);
});

test('endless lines use at most two files of the limit', () => {
  for (let line = 0; line < 1_000; line += 1) appendToLog(path, `line ${line}\n`, 1_000);
  expect(statSync(path).size).toBeLessThan(1_100);
  expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(1_000);
  expect(readFileSync(path, 'utf8').endsWith('line 999\n')).toBe(true);
});

test('threads that rotate a log concurrently keep its newest part', async () => {
  const turn = new Int32Array(new SharedArrayBuffer(8));
  const program = `const { workerData } = require('node:worker_threads');
    const { turn, path, module } = workerData;
    import(module).then(({ rotateLog }) => {
      for (let round = 0; round < 100; round += 1) {
        Atomics.add(turn, 1, 1);
        Atomics.notify(turn, 1);
        Atomics.wait(turn, 0, round);
        rotateLog(path, 200000);
      }
      Atomics.add(turn, 1, 1);
      Atomics.notify(turn, 1);
    });`;
  const workerData = { turn, path, module: join(import.meta.dirname, 'log-file.ts') };
  const threads = [1, 2].map(() => new Worker(program, { eval: true, workerData }));
  try {
    // Each thread has arrived once more than the number of rounds it has finished.
    const allAt = async (round: number): Promise<void> => {
      for (let there = 0; (there = Atomics.load(turn, 1)) < 2 * (round + 1);) await Atomics.waitAsync(turn, 1, there).value;
    };
    await allAt(0);
    for (let round = 1; round <= 100; round += 1) {
      const content = String(round % 10).repeat(200_000);
      writeFileSync(path, content);
      Atomics.store(turn, 0, round);
      Atomics.notify(turn, 0);
      await allAt(round);
      expect(readFileSync(`${path}.1`, 'latin1')).toBe(content);
    }
    expect(readdirSync(folder).toSorted()).toEqual(['x.log', 'x.log.1']);
  } finally {
    await Promise.all(threads.map((thread) => thread.terminate()));
  }
});

/** Runs a process that logs lines with `stdout` as its standard output; resolves with its exit code. */
async function logLines(lines: number, stdout: string): Promise<unknown> {
  const program = `const { createLogger } = await import(${JSON.stringify(join(import.meta.dirname, '../log.ts'))});
    const log = createLogger('test');
    for (let line = 0; line < ${lines}; line += 1) log.info({ line }, 'x'.repeat(1000));`;
  const file = openSync(stdout, 'a', 0o600);
  try {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      stdio: ['ignore', file, 'inherit'],
      timeout: 600_000,
    });
    return (await once(child, 'exit'))[0];
  } finally {
    closeSync(file);
  }
}

test('the log of a process that logs endlessly is bounded', async () => {
  expect(await logLines(40_000, path)).toBe(0);
  const mebibyte = 1_048_576;
  expect(statSync(path).size).toBeLessThan(17 * mebibyte);
  expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(17 * mebibyte);
  expect(readFileSync(path, 'utf8')).toContain('"line":39999,');
});

test.skipIf(process.getuid?.() !== 0)('a process that logs to a full disk continues and exits normally', async () => {
  await withTempHome(async (home) => {
    await withSmallDisk(home, 'size=4m', async () => {
      fillDisk(join(home, 'junk'));
      expect(await logLines(100, join(home, 'x.log'))).toBe(0);
      rmSync(join(home, 'junk'));
      expect(await logLines(1, join(home, 'x.log'))).toBe(0);
    });
  });
});

test.skipIf(process.getuid?.() !== 0)('on a full disk a log is rotated and its older part is lost', async () => {
  await withTempHome(async (home) => {
    await withSmallDisk(home, 'size=4m', () => {
      const log = join(home, 'x.log');
      writeFileSync(log, Buffer.alloc(2_000_000, 'x'));
      fillDisk(join(home, 'junk'));
      rotateLog(log, 1_000_000);
      expect(statSync(log).size).toBe(0);
      expect(readdirSync(home).toSorted()).toEqual(['junk', 'x.log']);
      expect(statfsSync(home).bavail).toBeGreaterThan(0);
    });
  });
});
