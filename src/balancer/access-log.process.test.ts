import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { AccessLog } from './access-log.ts';
import { openRecord } from './access-record.ts';

function write(log: AccessLog, count: number): void {
  for (let index = 0; index < count; index += 1) log.add({ ...openRecord(index, 0), requestId: `id-${index}` });
}

const linesOf = (path: string): readonly string[] => readFileSync(path, 'utf8').split('\n').slice(0, -1);

/** Of the file at that path, once it is another one than before. */
function inodeUnless(path: string, before: number): number | undefined {
  const inode = statSync(path, { throwIfNoEntry: false })?.ino;
  return inode === before ? undefined : inode;
}

test('lines are written in order, a fifth of a second later at most, readable by the owner alone', async () => {
  await withTempHome(async (dir) => {
    const clock = new FakeClock();
    const path = `${dir}/logs/access.log`;
    const log = new AccessLog({ path, clock, onError: (message) => expect.unreachable(message) });
    write(log, 1_000);
    await clock.advance(200);
    await waitFor('the lines', () => linesOf(path).length === 1_000);
    expect(linesOf(path).map((line) => /"id":"id-(\d+)"/.exec(line)?.[1])).toEqual(
      Array.from({ length: 1_000 }, (_, index) => String(index)),
    );
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await log.close();
  });
});

test('it is bounded: a full file is moved aside, and the one before goes', async () => {
  await withTempHome(async (dir) => {
    const clock = new FakeClock();
    const path = `${dir}/access.log`;
    const log = new AccessLog({ path, clock, onError: (message) => expect.unreachable(message), rotateAt: 10_000 });
    let before = 0;
    for (let round = 1; round <= 5; round += 1) {
      write(log, 100);
      await clock.advance(200);
      before = await waitFor('the file to be moved', () => inodeUnless(`${path}.1`, before));
    }
    expect(linesOf(`${path}.1`)).toHaveLength(100);
    await log.close();
  });
});

test('closing waits for a write that is under way', async () => {
  await withTempHome(async (dir) => {
    const clock = new FakeClock();
    const path = `${dir}/access.log`;
    const log = new AccessLog({ path, clock, onError: (message) => expect.unreachable(message) });
    write(log, 2_000);
    write(log, 5);
    await log.close();
    expect(linesOf(path)).toHaveLength(2_005);
  });
});

test('what waits is written when it is closed, and a later one goes on in the same file', async () => {
  await withTempHome(async (dir) => {
    const clock = new FakeClock();
    const path = `${dir}/access.log`;
    for (let round = 1; round <= 2; round += 1) {
      const log = new AccessLog({ path, clock, onError: (message) => expect.unreachable(message) });
      write(log, 3);
      await log.close();
    }
    expect(linesOf(path)).toHaveLength(6);
  });
});

test('a disk that takes nothing is reported once, and harms nothing', async () => {
  const clock = new FakeClock();
  const errors: string[] = [];
  const log = new AccessLog({ path: '/dev/full', clock, onError: (message) => errors.push(message) });
  for (let round = 1; round <= 3; round += 1) {
    write(log, 10);
    await clock.advance(200);
    await waitFor('the report', () => errors.length > 0);
  }
  await log.close();
  expect(errors).toEqual([expect.stringContaining('could not be written')]);
});

test('a file that cannot be opened is reported once, tried again, and harms nothing', async () => {
  await withTempHome(async (dir) => {
    const clock = new FakeClock();
    const errors: string[] = [];
    const path = `${dir}/file/access.log`;
    writeFileSync(`${dir}/file`, 'in the way');
    const log = new AccessLog({ path, clock, onError: (message) => errors.push(message) });
    write(log, 10);
    await clock.advance(200);
    write(log, 10);
    await clock.advance(200);
    expect(errors).toEqual([expect.stringContaining('could not be written')]);
    rmSync(`${dir}/file`);
    write(log, 10);
    await clock.advance(200);
    await log.close();
    expect(linesOf(path)).toHaveLength(10);
  });
});
