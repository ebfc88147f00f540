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

/** A pod of its own that is this machine. */
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

const away = new SvcError('SVC_KUBERNETES', 'The API server does not answer.');

test.for(remoteCases)('$name', ({ run }) => withPod((remote) => expect(run(remote)).resolves.toBeUndefined()));

test('small files go through one command, however many they are', () =>
  withPod(async (remote, pods) => {
    const path = `${remote.baseDir}/file`;
    for (let round = 0; round < 20; round += 1) {
      await remote.writeFile(path, `it's ${round}\\n $HOME\n`);
      expect(await remote.readFile(path)).toBe(`it's ${round}\\n $HOME\n`);
    }
    expect(await remote.readFile(`${path}.not-there`)).toBeUndefined();
    expect(pods.execs()).toBe(1);
  }));

test('a command that is kept for later does not keep this process from ending, and one that is used does', () =>
  withPod(async (remote, pods) => {
    const path = `${remote.baseDir}/file`;
    await remote.writeFile(path, 'content');
    expect(pods.holding()).toBe(0);
    const reading = remote.readFile(path);
    await waitFor('it to be used', () => pods.holding() === 1, { everyMs: 1 });
    expect(await reading).toBe('content');
    expect({ execs: pods.execs(), holding: pods.holding() }).toEqual({ execs: 1, holding: 0 });
  }));

test('at most three commands are kept for small files, and what is asked at once is answered to whom it belongs', () =>
  withPod(async (remote, pods) => {
    const paths = Array.from({ length: 30 }, (_, index) => `${remote.baseDir}/${index}`);
    await Promise.all(paths.map((path) => remote.writeFile(path, path)));
    expect(await Promise.all(paths.map((path) => remote.readFile(path)))).toEqual(paths);
    expect(pods.execs()).toBeLessThanOrEqual(3);
  }));

test('a connection that was cut between two looks is made anew without a word', () =>
  withPod(async (remote, pods) => {
    await remote.writeFile(`${remote.baseDir}/file`, 'content');
    pods.cut();
    expect(await remote.readFile(`${remote.baseDir}/file`)).toBe('content');
  }));

test('a command that may not be run twice fails when its connection is cut, and ends', () =>
  withPod(async (remote, pods) => {
    const pidFile = join(remote.baseDir, 'pid');
    const running = remote.exec(['sh', '-c', 'echo $$ >> "$1"; exec sleep 1000', 'sh', pidFile]);
    const told = running.catch((error: unknown) => error);
    const pid = await waitFor('the command', async () => (await remote.readFile(pidFile))?.trim());
    pods.cut();
    expect(await told).toMatchObject({ code: 'SVC_KUBERNETES', message: expect.stringContaining('broke while a command ran') });
    await waitFor('the command to end', async () => (await remote.readFile(`/proc/${pid}/cmdline`)) === undefined);
    expect(readFileSync(pidFile, 'utf8')).toBe(`${pid}\n`);
  }));

test('an API server that is away for a moment is asked again; one that stays away is told', () =>
  withPod(async (remote, pods) => {
    pods.refuse(away, 2);
    expect((await remote.exec(['echo', 'there'])).stdout).toBe('there\n');
    pods.refuse(away, 3);
    await expect(remote.exec(['echo', 'there'])).rejects.toBe(away);
  }));

test('a refusal is not repeated', () =>
  withPod(async (remote, pods) => {
    const denied = new SvcError('SVC_DENIED', 'The user may not exec in pods.');
    pods.refuse(denied, 1);
    await expect(remote.exec(['true'])).rejects.toBe(denied);
    expect(pods.execs()).toBe(1);
  }));

test('a call that is cancelled while the shell is busy with it leaves the shell to others', () =>
  withPod(async (remote, pods) => {
    await remote.writeFile(`${remote.baseDir}/file`, 'content');
    const stop = new AbortController();
    const memory = remote.memoryKills({ signal: stop.signal });
    stop.abort(new Error('enough'));
    await expect(memory).rejects.toThrow('enough');
    expect(await remote.readFile(`${remote.baseDir}/file`)).toBe('content');
    expect(pods.execs()).toBeLessThanOrEqual(2);
  }));

test('a large file is written through a command of its own', () =>
  withPod(async (remote) => {
    const content = 'ü'.repeat(100_000);
    await remote.writeFile(`${remote.baseDir}/large`, content);
    expect(await remote.readFile(`${remote.baseDir}/large`)).toBe(content);
    await remote.writeFile(`${remote.baseDir}/zero`, 'a\0b');
    expect(await remote.readFile(`${remote.baseDir}/zero`)).toBe('a\0b');
  }));
