import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { aBalancerReplica, withBalancer } from '../../../test/support/balancer.ts';
import { httpReplica, withReplicas } from '../../../test/support/raw-http.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { AccessLog, type AccessLogOptions } from './access-log.ts';
import { openRecord } from './access-record.ts';

const unexpected = (news: unknown): void => expect.unreachable(String(news));

function open(path: string, clock: FakeClock, options: Partial<AccessLogOptions> = {}): AccessLog {
  return new AccessLog({ path, clock, rotates: true, onError: unexpected, onLost: unexpected, ...options });
}

function write(log: AccessLog, count: number): void {
  for (let index = 0; index < count; index += 1) log.add({ ...openRecord(index, 0), requestId: `id-${index}` });
}

const linesOf = (path: string): readonly string[] => readFileSync(path, 'utf8').split('\n').slice(0, -1);

/** How many there are in the file at that path and in the one that was moved aside. */
const linesAt = (path: string): number =>
  [`${path}.1`, path].reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false }) === undefined ? 0 : linesOf(file).length), 0);

/** Of the file at that path, once it is another one than before. */
function inodeUnless(path: string, before: number): number | undefined {
  const inode = statSync(path, { throwIfNoEntry: false })?.ino;
  return inode === before ? undefined : inode;
}

/** Waits while time goes on: a flush that meets a write under way leaves its lines to the next one. */
function eventually<Value>(clock: FakeClock, what: string, look: () => Value | undefined | false): Promise<Value> {
  return waitFor(what, async () => {
    await clock.advance(200);
    return look();
  });
}

test('lines are written in order, a fifth of a second later at most, readable by the owner alone', async () => {
  await withTempHome(async (dir) => {
    const clock = new FakeClock();
    const path = `${dir}/logs/access.log`;
    const log = open(path, clock);
    write(log, 1_000);
    await clock.advance(200);
    await eventually(clock, 'the lines', () => linesOf(path).length === 1_000);
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
    const log = open(path, clock, { rotateAt: 10_000 });
    let before = 0;
    for (let round = 1; round <= 5; round += 1) {
      write(log, 100);
      await clock.advance(200);
      before = await eventually(clock, 'the file to be moved', () => inodeUnless(`${path}.1`, before));
    }
    expect(linesOf(`${path}.1`)).toHaveLength(100);
    await log.close();
  });
});

test('closing waits for a write that is under way', async () => {
  await withTempHome(async (dir) => {
    const clock = new FakeClock();
    const path = `${dir}/access.log`;
    const log = open(path, clock);
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
      const log = open(path, clock);
      write(log, 3);
      await log.close();
    }
    expect(linesOf(path)).toHaveLength(6);
  });
});

test('threads and processes write to one file: their lines stay whole, and those that do not rotate follow the one that does', async () => {
  await withTempHome(async (dir) => {
    const clock = new FakeClock();
    const path = `${dir}/access.log`;
    const logs = [0, 1, 2].map((index) => open(path, clock, { rotates: index === 0, rotateAt: 100_000 }));
    let written = 0;
    for (let round = 1; statSync(`${path}.1`, { throwIfNoEntry: false }) === undefined; round += 1) {
      for (const log of logs) write(log, 100);
      written += 300;
      await clock.advance(200);
      // Before more is said: a disk that is slow would else get so much at once that the file is moved aside twice, and the first one is lost.
      await eventually(clock, 'the lines of all', () => linesAt(path) === written);
    }
    for (const log of logs) write(log, 100);
    await clock.advance(200);
    await eventually(clock, 'the writers to follow', () => linesAt(path) === written + 300);
    for (const log of logs) await log.close();
    const lines = [...linesOf(`${path}.1`), ...linesOf(path)];
    expect(lines).toHaveLength(written + 300);
    expect(lines.filter((line) => !line.startsWith('{"at":') || !line.endsWith('"bytes_out":0}'))).toEqual([]);
  });
});

test('a file that somebody moved away is begun anew', async () => {
  await withTempHome(async (dir) => {
    const clock = new FakeClock();
    const path = `${dir}/access.log`;
    const other = open(path, clock, { rotates: false });
    renameSync(path, `${path}.aside`);
    write(other, 4);
    await clock.advance(200);
    await eventually(clock, 'the file', () => statSync(path, { throwIfNoEntry: false }) !== undefined);
    await other.close();
    expect([linesOf(path).length, linesOf(`${path}.aside`).length]).toEqual([4, 0]);
  });
});

test('a process that was succeeded leaves the rotation to its successor', async () => {
  await withTempHome(async (dir) => {
    const clock = new FakeClock();
    const path = `${dir}/access.log`;
    const log = open(path, clock, { rotateAt: 100 });
    log.leaveRotation();
    write(log, 100);
    await clock.advance(200);
    await eventually(clock, 'the lines', () => linesOf(path).length === 100);
    await log.close();
    expect(statSync(`${path}.1`, { throwIfNoEntry: false })).toBeUndefined();
  });
});

test('a disk that takes nothing is reported once, its lines are counted, and it harms nothing', async () => {
  const clock = new FakeClock();
  const errors: string[] = [];
  let lost = 0;
  const log = open('/dev/full', clock, { onError: (message) => errors.push(message), onLost: (lines) => (lost += lines) });
  for (let round = 1; round <= 3; round += 1) {
    write(log, 10);
    await clock.advance(200);
    await waitFor('the report', () => lost === round * 10);
  }
  await log.close();
  expect(errors).toEqual([expect.stringContaining('could not be written')]);
});

test('a file that cannot be opened is reported once, tried again, and harms nothing', async () => {
  await withTempHome(async (dir) => {
    const clock = new FakeClock();
    const errors: string[] = [];
    let lost = 0;
    const path = `${dir}/file/access.log`;
    writeFileSync(`${dir}/file`, 'in the way');
    const log = open(path, clock, { onError: (message) => errors.push(message), onLost: (lines) => (lost += lines) });
    write(log, 10);
    await clock.advance(200);
    write(log, 10);
    await clock.advance(200);
    expect([errors, lost]).toEqual([[expect.stringContaining('could not be written')], 20]);
    rmSync(`${dir}/file`);
    write(log, 10);
    await clock.advance(200);
    await log.close();
    expect(linesOf(path)).toHaveLength(10);
  });
});

test('a line that the disk has only half the room for spoils no other', async () => {
  await withReplicas([httpReplica((_, response) => response.end())], async (replica) => {
    await withBalancer([aBalancerReplica(replica?.port ?? 0)], async (balancer) => {
      const { accessLog } = balancer.config;
      const ask = async (count: number): Promise<void> => {
        await Promise.all(Array.from({ length: count }, async () => (await fetch(balancer.url)).arrayBuffer()));
      };
      const limitTo = (bytes: string): Buffer => execFileSync('prlimit', ['--pid', String(balancer.pid), `--fsize=${bytes}:`]);
      limitTo('1000');
      await ask(20);
      await waitFor('the full disk to be told', () => balancer.output.includes('The access log could not be written'));
      limitTo('unlimited');
      await ask(5);
      const texts = await waitFor('the last lines', () => {
        const lines = linesOf(accessLog);
        return lines.filter((line) => line.startsWith('{') && line.endsWith('}')).length > 5 ? lines : undefined;
      });
      const whole = texts.filter((line) => line.endsWith('}'));
      for (const line of whole) expect(JSON.parse(line)).toMatchObject({ outcome: 'ok' });
      expect(texts.length - whole.length).toBe(1);
    });
  });
});
