import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { localPods, type LocalPods } from '../../../test/support/local-pods.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { systemClock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { homePaths } from '../../shared/paths.ts';
import { remoteCases } from '../conformance.ts';
import { KubernetesRemote } from './index.ts';

let names = 0;

/** Runs `use` with a fake pod whose commands run on this machine. */
async function withPod(use: (remote: KubernetesRemote, pods: LocalPods) => Promise<void>): Promise<void> {
  await withTempHome(async (home) => {
    const pods = localPods();
    names += 1;
    const baseDir = join(home, 'replica');
    mkdirSync(baseDir);
    const remote = new KubernetesRemote({
      api: () => Promise.resolve(pods.api),
      context: 'local',
      pod: { namespace: 'default', name: `pod-${names}` },
      baseDir,
      environment: { SVC_ODD: "a'b" },
      reach: 'auto',
      paths: homePaths(join(home, 'svc'), process.getuid?.() ?? 0),
      clock: systemClock,
    });
    try {
      await use(remote, pods);
    } finally {
      await remote.close();
      pods.cut();
    }
  });
}

const unavailable = new SvcError('SVC_KUBERNETES', 'The API server does not answer.');

test.for(remoteCases)('$name', ({ run }) => withPod((remote) => expect(run(remote)).resolves.toBeUndefined()));

test('all small-file requests share one exec', () =>
  withPod(async (remote, pods) => {
    const path = `${remote.baseDir}/file`;
    for (let round = 0; round < 20; round += 1) {
      await remote.writeFile(path, `it's ${round}\\n $HOME\n`);
      expect(await remote.readFile(path)).toBe(`it's ${round}\\n $HOME\n`);
    }
    expect(await remote.readFile(`${path}.not-there`)).toBeUndefined();
    expect(pods.execs()).toBe(1);
  }));

test('an idle kept shell does not keep this process alive, a busy one does', () =>
  withPod(async (remote, pods) => {
    const path = `${remote.baseDir}/file`;
    await remote.writeFile(path, 'content');
    expect(pods.holding()).toBe(0);
    const before = pods.holds();
    expect(await remote.readFile(path)).toBe('content');
    expect({ execs: pods.execs(), holds: pods.holds() - before, holding: pods.holding() }).toEqual({ execs: 1, holds: 1, holding: 0 });
  }));

test('concurrent small-file requests use at most three shells and get their own results', () =>
  withPod(async (remote, pods) => {
    const paths = Array.from({ length: 30 }, (_, index) => `${remote.baseDir}/${index}`);
    await Promise.all(paths.map((path) => remote.writeFile(path, path)));
    expect(await Promise.all(paths.map((path) => remote.readFile(path)))).toEqual(paths);
    expect(pods.execs()).toBeLessThanOrEqual(3);
  }));

test('a connection that was cut between two requests is reopened silently', () =>
  withPod(async (remote, pods) => {
    await remote.writeFile(`${remote.baseDir}/file`, 'content');
    pods.cut();
    expect(await remote.readFile(`${remote.baseDir}/file`)).toBe('content');
  }));

test('a non-repeatable command fails and is killed when its connection is cut', () =>
  withPod(async (remote, pods) => {
    const pidFile = join(remote.baseDir, 'pid');
    const running = remote.exec(['sh', '-c', 'echo $$ >> "$1"; exec sleep 1000', 'sh', pidFile]);
    const failure = running.catch((error: unknown) => error);
    const pid = await waitFor('the command', async () => (await remote.readFile(pidFile))?.trim());
    pods.cut();
    expect(await failure).toMatchObject({ code: 'SVC_KUBERNETES', message: expect.stringContaining('broke while a command ran') });
    await waitFor('the command to end', async () => (await remote.readFile(`/proc/${pid}/cmdline`)) === undefined);
    expect(readFileSync(pidFile, 'utf8')).toBe(`${pid}\n`);
  }));

test('an unavailable API server is retried, and the last error is thrown', () =>
  withPod(async (remote, pods) => {
    pods.refuse(unavailable, 2);
    expect((await remote.exec(['echo', 'there'])).stdout).toBe('there\n');
    pods.refuse(unavailable, 3);
    await expect(remote.exec(['echo', 'there'])).rejects.toBe(unavailable);
  }));

test('a denied request is not retried', () =>
  withPod(async (remote, pods) => {
    const denied = new SvcError('SVC_DENIED', 'The user may not exec in pods.');
    pods.refuse(denied, 1);
    await expect(remote.exec(['true'])).rejects.toBe(denied);
    expect(pods.execs()).toBe(1);
  }));

test('a call that is cancelled during a script does not block the shell', () =>
  withPod(async (remote, pods) => {
    await remote.writeFile(`${remote.baseDir}/file`, 'content');
    const stop = new AbortController();
    const memory = remote.memoryKills({ signal: stop.signal });
    stop.abort(new Error('enough'));
    await expect(memory).rejects.toThrow('enough');
    expect(await remote.readFile(`${remote.baseDir}/file`)).toBe('content');
    expect(pods.execs()).toBeLessThanOrEqual(2);
  }));

test('a large file is written by a separate command', () =>
  withPod(async (remote) => {
    const content = 'ü'.repeat(100_000);
    await remote.writeFile(`${remote.baseDir}/large`, content);
    expect(await remote.readFile(`${remote.baseDir}/large`)).toBe(content);
    await remote.writeFile(`${remote.baseDir}/zero`, 'a\0b');
    expect(await remote.readFile(`${remote.baseDir}/zero`)).toBe('a\0b');
  }));
