import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { jobCases } from '../../src/provision/job-conformance.ts';
import { remoteCases } from '../../src/remote/conformance.ts';
import { busyboxImage, describeKubernetes, startKubernetes, type TestCluster } from '../support/kubernetes.ts';
import { waitFor } from '../support/wait-for.ts';
import { withTempHome } from '../support/temp-home.ts';
import { aHome, openPod, startPod } from './pod-remotes.ts';

describeKubernetes('nodes', 'a pod as a machine', () => {
  let cluster: TestCluster;
  beforeAll(async () => (cluster = await startKubernetes({ nodes: 1, audit: true })));
  afterAll(() => cluster.release());

  test.for(remoteCases)('$name', async ({ run }) => {
    const remote = openPod(cluster, await startPod(cluster), { paths: aHome(cluster), environment: { SVC_ODD: "a'b" } });
    await expect(run(remote)).resolves.toBeUndefined();
  });

  test.for(remoteCases.filter(({ needsGnuFind }) => needsGnuFind !== true))(
    'busybox, another user, a root that cannot be written: $name',
    async ({ run }) => {
      const name = await startPod(cluster, { image: busyboxImage, isTight: true });
      await expect(run(openPod(cluster, name, { paths: aHome(cluster) }))).resolves.toBeUndefined();
    },
  );

  test.for(jobCases)('job: $name', async ({ run }) => {
    const paths = aHome(cluster);
    const [remote, other] = [await startPod(cluster), await startPod(cluster)].map((name) => openPod(cluster, name, { paths }));
    if (remote === undefined || other === undefined) throw new Error('no pods');
    const { stdout } = await remote.exec(['sh', '-c', 'command -v node']);
    await expect(run({ remote, other, node: stdout.trim() })).resolves.toBeUndefined();
  });

  test('a folder is synchronised although find cannot list it', async () => {
    await withTempHome(async (dir) => {
      const remote = openPod(cluster, await startPod(cluster, { image: busyboxImage }), { paths: aHome(cluster) });
      const target = `${remote.baseDir}/copy`;
      const copied = async (): Promise<string> => {
        await remote.copyTo(dir, target);
        return (
          await remote.exec([
            'sh',
            '-c',
            'cd "$1" && for file in $(find . -type f | sort); do echo "$file $(cat "$file")"; done',
            'sh',
            target,
          ])
        ).stdout;
      };
      mkdirSync(join(dir, 'sub'));
      for (const name of ['changes', 'goes', 'sub/stays']) writeFileSync(join(dir, name), 'once');
      expect(await copied()).toBe('./changes once\n./goes once\n./sub/stays once\n');
      writeFileSync(join(dir, 'changes'), 'then');
      rmSync(join(dir, 'goes'));
      expect(await copied()).toBe('./changes then\n./sub/stays once\n');
    });
  });

  test("a long name is unpacked by a tar other than GNU's", async () => {
    await withTempHome(async (dir) => {
      const long = join('d'.repeat(90), 'e'.repeat(90), `${'f'.repeat(90)}.txt`);
      mkdirSync(join(dir, long, '..'), { recursive: true });
      writeFileSync(join(dir, long), 'long');
      const remote = openPod(cluster, await startPod(cluster, { image: busyboxImage }), { paths: aHome(cluster) });
      await remote.copyTo(dir, `${remote.baseDir}/copy`);
      expect(await remote.readFile(`${remote.baseDir}/copy/${long}`)).toBe('long');
    });
  });

  test('an OOM kill is recognised', async () => {
    const remote = openPod(cluster, await startPod(cluster, { memory: '64Mi' }), { paths: aHome(cluster) });
    expect(await remote.memoryKills()).toEqual({ kills: 0, limitBytes: 67_108_864 });
    await remote.exec(['python3', '-c', 'x = bytearray(200_000_000); x[:] = b"1" * len(x)']);
    expect(await remote.memoryKills()).toMatchObject({ kills: expect.any(Number) });
    expect((await remote.memoryKills())?.kills).toBeGreaterThan(0);
  });

  test('repeated inspection of a pod sends no further API requests', async () => {
    const name = await startPod(cluster);
    const remote = openPod(cluster, name, { paths: aHome(cluster) });
    const requests = (): number => cluster.auditLog().filter(({ uri }) => uri.includes(`/pods/${name}/exec`)).length;
    await remote.writeFile(`${remote.baseDir}/file`, 'content');
    const before = requests();
    for (let attempt = 0; attempt < 50; attempt += 1) expect(await remote.readFile(`${remote.baseDir}/file`)).toBe('content');
    expect(requests()).toBe(before);
  });

  test('an image without a shell is distinguished from an unreachable pod', async () => {
    const remote = openPod(cluster, await startPod(cluster), { paths: aHome(cluster) });
    await remote.exec(['sh', '-c', 'rm -f /bin/sh /usr/bin/sh']);
    await expect(remote.exec(['true'])).rejects.toMatchObject({ code: 'SVC_HOST_UNFIT', message: expect.stringContaining('no /bin/sh') });
  });

  // Last, because the cluster takes a while to recover.
  test('a command fails when the API server dies, and later commands succeed', async () => {
    const remote = openPod(cluster, await startPod(cluster), { paths: aHome(cluster) });
    const running = remote.exec(['sh', '-c', 'echo $$ > "$1"; exec sleep 1000', 'sh', `${remote.baseDir}/pid`]);
    const pid = await waitFor('the command', async () => (await remote.readFile(`${remote.baseDir}/pid`))?.trim() || undefined);
    const outcome = running.catch((error: unknown) => error);
    await cluster.stopApiServer();
    try {
      expect(await outcome).toMatchObject({ code: 'SVC_KUBERNETES', message: expect.stringContaining('broke while a command ran') });
    } finally {
      await cluster.startApiServer();
    }
    await waitFor('the command to end', async () => (await remote.readFile(`/proc/${pid}/cmdline`)) === undefined);
  });
});
