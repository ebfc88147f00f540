import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import type { Remote } from '../remote/remote.ts';
import { SvcError } from '../shared/errors.ts';
import { untilKept } from './kept-log.ts';

let folder: string;
let target: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-t-'));
  target = join(folder, 'job.log');
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A machine elsewhere whose log has so many bytes; without a number it does not answer. */
const having = (bytes?: number): Pick<Remote, 'exec' | 'localPath'> => ({
  localPath: () => undefined,
  exec: () =>
    bytes === undefined
      ? Promise.reject(new SvcError('SVC_SSH', 'It does not answer.'))
      : Promise.resolve({ exitCode: 0, stdout: `${bytes} /a/job.log\n`, stderr: '' }),
});

/** Waits for the log; tells whether it is over. */
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

test('the last words of a job elsewhere are waited for, as long as they keep coming', async () => {
  const wait = waiting(having(9));
  for (const content of ['one', 'one two', 'one two !']) {
    await wait.clock.advance(4_000);
    expect(wait.isOver).toBe(false);
    writeFileSync(target, content);
  }
  await wait.clock.advance(100);
  expect(wait.isOver).toBe(true);
});

test('a log that grows no more, one that is here already, and a machine that does not answer hold nobody up', async () => {
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

test('it ends with its signal', async () => {
  const stop = new AbortController();
  const wait = waiting(having(9), stop.signal);
  await wait.clock.advance(100);
  stop.abort();
  await wait.clock.advance(0);
  expect(wait.isOver).toBe(true);
});
