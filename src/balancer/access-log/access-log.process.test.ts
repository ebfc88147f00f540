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

/** The number of lines in the file at that path and in the file that was moved aside. */
const linesAt = (path: string): number =>
  [`${path}.1`, path].reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false }) === undefined ? 0 : linesOf(file).length), 0);

/** The inode of the file at that path; undefined while it is still the previous one. */
function inodeUnless(path: string, before: number): number | undefined {
  const inode = statSync(path, { throwIfNoEntry: false })?.ino;
  return inode === before ? undefined : inode;
}

/** Waits while the clock advances: a flush during a running write leaves its lines to the next flush. */
function eventually<Value>(clock: FakeClock, what: string, check: () => Value | undefined | false): Promise<Value> {
  return waitFor(what, async () => {
    await clock.advance(200);
    return check();
  });
}

test('lines appear in order within 200 ms, readable only by the owner', async () => {
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

test('a full file is moved aside, and the previous one is deleted', async () => {
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

test('close() waits for a running write', async () => {
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

test('close() writes pending lines, and the next log appends to the same file', async () => {
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

test('concurrent writers keep lines whole, and non-rotating writers follow the rotated file', async () => {
  await withTempHome(async (dir) => {
    const clock = new FakeClock();
    const path = `${dir}/access.log`;
    const logs = [0, 1, 2].map((index) => open(path, clock, { rotates: index === 0, rotateAt: 100_000 }));
    let written = 0;
    for (let round = 1; statSync(`${path}.1`, { throwIfNoEntry: false }) === undefined; round += 1) {
      for (const log of logs) write(log, 100);
      written += 300;
      await clock.advance(200);
      // Wait before more lines are added. Otherwise a slow disk gets so much at once that the file is moved aside
      // twice, and the first file is lost.
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

test('after an outside program moves the file, the log starts a new one', async () => {
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

test('a process that has handed over leaves log rotation to its successor', async () => {
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

test('a full disk is reported once, and lost lines are counted', async () => {
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

test('a file that cannot be opened is reported once and retried', async () => {
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

test('a line cut short by a full disk does not corrupt other lines', async () => {
  await withReplicas([httpReplica((_, response) => response.end())], async (replica) => {
    await withBalancer([aBalancerReplica(replica?.port ?? 0)], async (balancer) => {
      const { accessLog } = balancer.config;
      const ask = async (count: number): Promise<void> => {
        await Promise.all(Array.from({ length: count }, async () => (await fetch(balancer.url)).arrayBuffer()));
      };
      const limitTo = (bytes: string): Buffer => execFileSync('prlimit', ['--pid', String(balancer.pid), `--fsize=${bytes}:`]);
      limitTo('1000');
      await ask(20);
      await waitFor('the report of the full disk', () => balancer.output.includes('The access log could not be written'));
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
