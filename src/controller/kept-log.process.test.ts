import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { fillDisk, withSmallDisk } from '../../test/support/small-disk.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { followFile } from '../remote/local.ts';
import type { Remote } from '../remote/remote.ts';
import { systemClock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import { boundEndedLog, boundLog, followLog, removeReplicaLogs, untilKept } from './kept-log.ts';

let folder: string;
let target: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-t-'));
  target = join(folder, 'job.log');
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A remote machine whose log has this many bytes; without a number it does not answer. */
const having = (bytes?: number): Pick<Remote, 'exec' | 'localPath'> => ({
  localPath: () => undefined,
  exec: () =>
    bytes === undefined
      ? Promise.reject(new SvcError('SVC_SSH', 'It does not answer.'))
      : Promise.resolve({ exitCode: 0, stdout: `${bytes} /a/job.log\n`, stderr: '' }),
});

/** Starts waiting for the log; the result says whether the wait is over. */
function waiting(remote: Pick<Remote, 'exec' | 'localPath'>, signal = new AbortController().signal) {
  const clock = new FakeClock();
  const wait = { clock, isOver: false };
  const run = async (): Promise<void> => {
    await untilKept(remote, '/a/job.log', target, clock, signal);
    wait.isOver = true;
  };
  void run();
  return wait;
}

test('the last lines of a remote job are awaited while they keep arriving', async () => {
  const wait = waiting(having(9));
  for (const content of ['one', 'one two', 'one two !']) {
    await wait.clock.advance(4_000);
    expect(wait.isOver).toBe(false);
    writeFileSync(target, content);
  }
  await wait.clock.advance(100);
  expect(wait.isOver).toBe(true);
});

test('the wait ends for a log that stops growing, is local or unreadable', async () => {
  const still = waiting(having(9));
  await still.clock.advance(5_100);
  expect(still.isOver).toBe(true);

  writeFileSync(target, 'all of it');
  for (const remote of [having(9), having(), { ...having(99), localPath: () => target }]) {
    const wait = waiting(remote);
    await wait.clock.advance(0);
    expect(wait.isOver).toBe(true);
  }
});

test('the wait ends with its signal', async () => {
  const stop = new AbortController();
  const wait = waiting(having(9), stop.signal);
  await wait.clock.advance(100);
  stop.abort();
  await wait.clock.advance(0);
  expect(wait.isOver).toBe(true);
});

test('a log over its limit releases its older half and keeps its size', async () => {
  const mebibyte = 1_048_576;
  writeFileSync(target, `${'x'.repeat(3 * mebibyte)}the end`);
  await boundLog(target, systemClock, 2 * mebibyte);
  expect(statSync(target).size).toBe(3 * mebibyte + 7);
  expect(statSync(target).blocks * 512).toBeLessThan(2 * mebibyte);
  expect(readFileSync(target, 'latin1').endsWith('xthe end')).toBe(true);
});

test('the log of an ended replica keeps its newest 8 to 16 MiB', async () => {
  await boundEndedLog(target, systemClock);
  writeFileSync(target, `${'x'.repeat(20 * 1_048_576)}the end`);
  await boundEndedLog(target, systemClock);
  expect(statSync(target).blocks * 512).toBeLessThanOrEqual(9 * 1_048_576);
  expect(readFileSync(target, 'latin1').endsWith('xthe end')).toBe(true);
});

test('where holes cannot be punched, a log keeps its newer part and its size', async () => {
  const mebibyte = 1_048_576;
  writeFileSync(join(folder, 'fallocate'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`);
  try {
    writeFileSync(target, `${'x'.repeat(3 * mebibyte)}the end`);
    await boundLog(target, systemClock, 2 * mebibyte);
  } finally {
    vi.unstubAllEnvs();
  }
  expect(statSync(target).size).toBe(3 * mebibyte + 7);
  expect(statSync(target).blocks * 512).toBeLessThan(2 * mebibyte);
  expect(readFileSync(target, 'latin1').endsWith('xthe end')).toBe(true);
});

test.skipIf(process.getuid?.() !== 0)('copying a log continues after its disk was full', async () => {
  const disk = join(folder, 'disk');
  mkdirSync(disk);
  const stop = new AbortController();
  await withSmallDisk(disk, 'size=2m', async () => {
    const source = join(folder, 'source');
    writeFileSync(source, Buffer.alloc(100_000, 'x'));
    fillDisk(join(disk, 'junk'));
    const remote = { follow: (path: string, offset: number, signal: AbortSignal) => followFile(path, offset, systemClock, signal) };
    const following = followLog(remote, source, join(disk, 'copy'), systemClock, stop.signal);
    try {
      await waitFor('the copy to begin', () => existsSync(join(disk, 'copy')));
      rmSync(join(disk, 'junk'));
      appendFileSync(source, 'the end');
      await waitFor('the whole copy', () => statSync(join(disk, 'copy')).size === 100_007);
      expect(readFileSync(join(disk, 'copy')).equals(readFileSync(source))).toBe(true);
    } finally {
      stop.abort();
      await following;
    }
  });
});

test('logs of replicas without a record are removed', async () => {
  for (const name of ['1.job.log', '1.provision.log', '2.job.log', '12.job.log']) writeFileSync(join(folder, name), '');
  await removeReplicaLogs(folder, new Set([2, 12]));
  expect(readdirSync(folder)).toEqual(['12.job.log', '2.job.log']);
});
