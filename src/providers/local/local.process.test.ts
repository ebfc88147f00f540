import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { aMachineSpec, someResources } from '../../../test/support/builders.ts';
import { processesOf } from '../../../test/support/leaks.ts';
import { withLocalProvider, type LocalProviderFixture } from '../../../test/support/local-provider.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { LocalRegion } from '../../domain/config.ts';
import type { Resources } from '../../domain/task.ts';
import { jobLogPath, jobStatus, startJob } from '../../provision/job.ts';
import type { Remote } from '../../remote/remote.ts';
import { dialReplica } from '../../shared/system/dial.ts';
import { SvcError } from '../../shared/errors.ts';
import { identifyProcess } from '../../shared/system/process-identity.ts';
import { providerCases } from '../conformance.ts';
import type { MachineId } from '../provider.ts';
import { machineFiles } from './machine-store.ts';

const region = (change: Partial<LocalRegion>): LocalRegion => ({
  name: 'local',
  state: 'up',
  refuseWith: 'capacity',
  maxMachines: undefined,
  ...change,
});

const spec = aMachineSpec();

async function createFor(fixture: LocalProviderFixture, key: string, resources: Partial<Resources> = {}): Promise<MachineId> {
  const { offers, whyNone } = await fixture.provider.offers(someResources(resources), {});
  const [offer] = offers;
  if (offer === undefined) throw new Error(whyNone);
  return fixture.provider.create(offer, spec, key, {});
}

/** Runs shell commands on a machine as its program, to their end, and returns their output. */
async function outputOf(remote: Remote, run: string, job = 'main', setup?: string): Promise<string> {
  await startJob(remote, job, {
    run,
    env: { NODE: process.execPath },
    workdir: `${remote.baseDir}/workdir`,
    ...(setup === undefined ? {} : { setup }),
  });
  await waitFor('the program to end', async () => (await jobStatus(remote, job)).phase === 'ended', {
    describe: () => remote.readFile(jobLogPath(remote, job)),
  });
  const log = (await remote.readFile(jobLogPath(remote, job))) ?? '';
  return log
    .split('\n')
    .filter((line) => !line.startsWith('[svc '))
    .join('\n')
    .trim();
}

const codeOf = (error: unknown): string => (error instanceof SvcError ? error.code : String(error));

test.concurrent.for(providerCases)('local: $name', async ({ run }) => {
  await withLocalProvider({}, async (localFixture) => {
    const fixture = {
      provider: localFixture.provider,
      other: await localFixture.open(),
      resources: someResources(),
      async refuse() {
        localFixture.configure({ regions: [region({ state: 'refusing' })] });
        await Promise.resolve();
      },
      async preemptAll() {
        localFixture.configure({ regions: [region({ state: 'lost' })] });
        await Promise.resolve();
      },
      untilRunning: () => Promise.resolve(),
    };
    await expect(run(fixture)).resolves.toBeUndefined();
  });
});

test('a lost region ends the processes of its machines and accepts no new ones', async () => {
  await withLocalProvider({ regions: [region({ name: 'a' }), region({ name: 'b' })] }, async (fixture) => {
    const [a, b] = [await createFor(fixture, 'a', { region: 'a' }), await createFor(fixture, 'b', { region: 'b' })];
    for (const id of [a, b]) {
      const remote = fixture.provider.remote(id);
      await startJob(remote, 'main', { run: 'exec sleep 300', env: {}, workdir: remote.baseDir });
    }
    fixture.configure({ regions: [region({ name: 'a', state: 'lost' }), region({ name: 'b' })] });
    const statuses = await fixture.provider.inspect([a, b], {});
    expect([statuses.get(a), statuses.get(b)]).toEqual([{ state: 'gone', reason: 'preempted' }, { state: 'running' }]);
    expect(processesOf(machineFiles(fixture.paths, a).dir)).toEqual([]);
    await waitFor('the job of the other region', async () => (await jobStatus(fixture.provider.remote(b), 'main')).phase === 'run');
    await expect(createFor(fixture, 'c', { region: 'a' })).rejects.toThrow(/region 'a' gives no machines: its state is 'lost'/);
  });
});

test('a region with its maximum of machines refuses with its configured kind', async () => {
  await withLocalProvider({ regions: [region({ maxMachines: 1, refuseWith: 'quota' })] }, async (fixture) => {
    const id = await createFor(fixture, 'a');
    const refusal = await createFor(fixture, 'b').catch((error: unknown) => error);
    expect([codeOf(refusal), String(refusal)]).toEqual(['SVC_QUOTA', expect.stringContaining("The region 'local' has 1 of 1 machines")]);
    await fixture.provider.destroy(id, {});
    await expect(createFor(fixture, 'b')).resolves.toBeTypeOf('string');
  });
});

test('a GPU is allotted to one machine and hidden from all others', async () => {
  await withLocalProvider({ gpus: { name: 'L4', count: 3 } }, async (fixture) => {
    const visible = (id: MachineId): string | undefined => fixture.provider.remote(id).environment['CUDA_VISIBLE_DEVICES'];
    const two = await createFor(fixture, 'two', { accelerator: { name: 'l4', count: 2 } });
    const none = await createFor(fixture, 'none');
    expect([visible(two), visible(none)]).toEqual(['0,1', '']);
    const refusal = await createFor(fixture, 'more', { accelerator: { name: 'L4', count: 2 } }).catch((error: unknown) => error);
    expect([codeOf(refusal), String(refusal)]).toEqual(['SVC_CAPACITY', expect.stringContaining('1 of 3 on this computer are free')]);
    await fixture.provider.destroy(two, {});
    expect(visible(await createFor(fixture, 'more', { accelerator: { name: 'L4', count: 3 } }))).toBe('0,1,2');
  });
});

test('a computer without GPUs sets no GPU variables', async () => {
  await withLocalProvider({}, async (fixture) => {
    expect(Object.keys((await fixture.machine('a')).remote.environment)).toEqual(['SVC_COOKIE']);
  });
});

test('destroy ends daemons outside the namespaces and removes write-protected folders', async () => {
  await withLocalProvider({}, async (fixture) => {
    const { id, remote } = await fixture.machine('a');
    const setup = `(setsid sh -c "trap '' TERM HUP; sleep 300 & exec sleep 300" &) ; mkdir -p deep/er; touch deep/er/file; chmod 500 deep/er deep`;
    await outputOf(remote, 'true', 'main', setup);
    const daemons = () => processesOf(fixture.paths.home).filter(({ command }) => command === 'sleep 300');
    await waitFor('the daemons', () => daemons().length === 2);
    await fixture.provider.destroy(id, {});
    // Other processes of the ended job may take a moment longer. The check after every test finds those that stay.
    expect(daemons()).toEqual([]);
    expect(readdirSync(join(fixture.paths.localDir, 'machines'))).toEqual([]);
  });
});

test('a machine without isolation is removed only after its processes have ended', async () => {
  await withLocalProvider({ isolation: 'none' }, async (fixture) => {
    const { id, remote } = await fixture.machine('a');
    // An abstract socket name. It is free again when the kernel has closed the process's files, after it reclaimed its
    // memory. That takes a while for much memory, as with a model.
    const held = `\0${fixture.paths.home}`;
    const program = `const memory = Buffer.alloc(400_000_000, 1); require('net').createServer().listen(String.fromCharCode(0) + process.env.HELD, () => console.log('holds', memory.length))`;
    const env = { NODE: process.execPath, HELD: held.slice(1) };
    await startJob(remote, 'main', { run: `exec "$NODE" -e "${program}"`, env, workdir: remote.baseDir });
    await waitFor('the program', async () => (await remote.readFile(jobLogPath(remote, 'main')))?.includes('holds 4'));
    await fixture.provider.destroy(id, {});
    const server = createServer();
    const taken = await new Promise((resolve) => server.once('error', resolve).listen(held, () => resolve(undefined)));
    server.close();
    expect(taken).toBeUndefined();
  });
});

test('a machine with an incomplete folder can be destroyed', async () => {
  await withLocalProvider({}, async (fixture) => {
    const running = await fixture.machine('running');
    await startJob(running.remote, 'main', { run: 'exec sleep 300', env: {}, workdir: running.remote.baseDir });
    await waitFor('its beginning', async () => (await jobStatus(running.remote, 'main')).phase === 'run');
    const half = await fixture.machine('half');
    const files = machineFiles(fixture.paths, half.id);
    rmSync(files.record);
    rmSync(files.enter);
    writeFileSync(files.destroying, '');
    mkdirSync(join(fixture.paths.localDir, 'machines', '.new-0123-456'));
    expect((await fixture.provider.list({}, {})).map(({ id }) => id)).toEqual([running.id]);
    await fixture.provider.destroy(half.id, {});
    expect(existsSync(files.dir)).toBe(false);
    await fixture.machine('another');
    expect(readdirSync(join(fixture.paths.localDir, 'machines')).filter((name) => name.startsWith('.'))).toEqual([]);
    expect((await jobStatus(running.remote, 'main')).phase).toBe('run');
  });
});

test('a machine that is being destroyed starts nothing', async () => {
  await withLocalProvider({}, async (fixture) => {
    const { id, remote } = await fixture.machine('a');
    writeFileSync(machineFiles(fixture.paths, id).destroying, '');
    await startJob(remote, 'main', { run: 'touch started', env: {}, workdir: remote.baseDir });
    await waitFor('the job to end', async () => (await jobStatus(remote, 'main')).phase === 'ended');
    expect(await remote.readFile(`${remote.baseDir}/started`)).toBeUndefined();
  });
});

test('each machine has its own /tmp, in which SVC_HOME stays visible', async () => {
  await withLocalProvider({}, async (fixture) => {
    const [a, b] = [await fixture.machine('a'), await fixture.machine('b')];
    // These paths stay visible below /tmp because the machine needs them: SVC_HOME, this checkout with the runtime, and
    // the user's home.
    const needed = [fixture.paths.home, process.cwd(), homedir()].filter((path) => path.startsWith('/tmp/'));
    const visible = [...new Set(['file', ...needed.map((path) => path.split('/')[2] ?? '')])].toSorted();
    expect(await outputOf(a.remote, 'echo mine > /tmp/file; ls /tmp; pwd')).toBe([...visible, `${a.remote.baseDir}/workdir`].join('\n'));
    expect(await outputOf(b.remote, 'cat /tmp/file || true')).toContain('No such file');
    expect(existsSync('/tmp/file')).toBe(false);
  });
});

test("a program has its user's rights and no access to the host", async () => {
  await withLocalProvider({}, async (fixture) => {
    const { remote } = await fixture.machine('a');
    const probes = [
      'id -u',
      'umask',
      'mount -t tmpfs none /mnt 2>/dev/null || echo no-mount',
      'ip link add dummy0 type dummy 2>/dev/null || echo no-network',
      'touch own && echo writes',
      'ls /proc | grep -c "^[0-9]" | { read -r n; [ "$n" -lt 20 ] && echo few-processes; }',
    ];
    const uid = String(process.getuid?.());
    const mask = process.umask().toString(8).padStart(4, '0');
    expect((await outputOf(remote, probes.join('\n'))).split('\n')).toEqual([
      uid,
      mask,
      'no-mount',
      'no-network',
      'writes',
      'few-processes',
    ]);
  });
});

const answerServer = `require('net').createServer({ allowHalfOpen: true }, (s) => s.pipe(s)).listen(80)`;

test('the forwarder restarts when its process is killed', async () => {
  await withLocalProvider({}, async (fixture) => {
    const { id, remote } = await fixture.machine('a');
    await startJob(remote, 'main', { run: `exec "$NODE" -e "${answerServer}"`, env: { NODE: process.execPath }, workdir: remote.baseDir });
    const dial = async (): Promise<boolean> => {
      try {
        (await dialReplica(await remote.address(80), { timeoutMs: 5_000 })).destroy();
        return true;
      } catch {
        return false;
      }
    };
    await waitFor('an answer', dial);
    const forwarder = processesOf(machineFiles(fixture.paths, id).dir).find(({ command }) => command.includes('forwarder.mjs '));
    if (forwarder === undefined) throw new Error('no forwarder');
    process.kill(forwarder.pid, 'SIGKILL');
    await waitFor('its end', () => identifyProcess(forwarder.pid) === undefined);
    expect(await waitFor('another answer', dial)).toBe(true);
  });
});

test('bytes pass both directions in full, and each side ends independently', async () => {
  await withLocalProvider({}, async (fixture) => {
    const { remote } = await fixture.machine('a');
    await startJob(remote, 'main', { run: `exec "$NODE" -e "${answerServer}"`, env: { NODE: process.execPath }, workdir: remote.baseDir });
    const socket = await waitFor('a connection', async () =>
      dialReplica(await remote.address(80), { timeoutMs: 5_000 }).catch(() => undefined),
    );
    const sent = Buffer.alloc(5_000_000, 'svc');
    socket.end(sent);
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk);
    expect(Buffer.concat(chunks).equals(sent)).toBe(true);
  });
});

test('a program reaches other computers, but not loopback services of the host', async ({ skip }) => {
  const address = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal)?.address;
  const server = createServer((socket) => socket.end('outside'));
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  const bound = server.address();
  try {
    await withLocalProvider({}, async (fixture) => {
      const { outbound } = JSON.parse(JSON.stringify(Object.fromEntries((await fixture.provider.check({})).details)));
      if (address === undefined || typeof bound !== 'object' || bound === null || !/slirp4netns|pasta/.test(String(outbound)))
        return skip();
      const { remote } = await fixture.machine('a');
      // An address of this computer: no packet leaves it.
      const ask = (host: string): string =>
        `"$NODE" -e "const s = require('net').connect(${bound.port}, '${host}'); s.on('data', (d) => console.log(String(d))).on('error', (e) => console.log(e.code))"`;
      expect(await outputOf(remote, `${ask(address)}; ${ask('127.0.0.1')}`)).toBe('outside\nECONNREFUSED');
      return undefined;
    });
  } finally {
    server.close();
  }
});

const zone = (room: number, reclaimAfterSeconds: number) => ({
  name: 'a',
  region: 'local',
  room,
  hourlyUsd: 0.3,
  reclaimAfterSeconds,
  rebalanceSeconds: 0,
});

test('a zone that shrinks gives a notice, then reclaims the machine; one without notice time reclaims at once', async () => {
  await withLocalProvider({ spotZones: [zone(2, 300)], hourlyUsd: 1 }, async (fixture) => {
    const { provider } = fixture;
    const resources = someResources({ useSpot: true });
    const { offers } = await provider.offers(resources, {});
    expect(offers.map(({ zone: name, spot, hourlyUsd, room }) => [name, spot, hourlyUsd, room])).toEqual([['a', true, 0.3, 2]]);
    const [offer] = offers;
    if (offer === undefined) throw new Error('no offer');
    const create = (key: string) => provider.create(offer, aMachineSpec({ tags: { 'svc-key': key } }), key, {});
    const ids = [await create('one'), await create('two')];
    await expect(create('three')).rejects.toMatchObject({ code: 'SVC_CAPACITY' });
    const statuses = async () => (await Promise.all(ids.map((id) => provider.inspect([id], {})))).flatMap((found) => [...found.values()]);
    expect(await statuses()).toEqual([{ state: 'running' }, { state: 'running' }]);

    fixture.configure({ spotZones: [zone(1, 300)] });
    const noticed = await statuses();
    const notices = noticed.flatMap((status) => (status.state === 'running' ? [status.notice?.kind ?? 'none'] : []));
    expect(notices.toSorted()).toEqual(['interruption', 'none']);
    // The time of the notice stays.
    expect(await statuses()).toEqual(noticed);

    fixture.configure({ spotZones: [zone(0, 0)] });
    const ended = await statuses();
    expect(ended.filter(({ state }) => state === 'gone')).toEqual([{ state: 'gone', reason: 'preempted' }]);
    fixture.configure({ spotZones: [zone(2, 300)] });
    expect((await statuses()).filter(({ state }) => state === 'gone')).toHaveLength(1);
  });
});

test('check reports isolation, outbound access, GPUs and regions', async () => {
  await withLocalProvider(
    { isolation: 'none', regions: [region({ name: 'a' }), region({ name: 'b', state: 'refusing' })] },
    async ({ provider }) => {
      expect(await provider.check({})).toEqual({
        enabled: true,
        summary: 'this computer; isolation: none (as set), outbound: host',
        remedies: expect.arrayContaining([expect.stringContaining('apt-get install')]),
        details: [
          ['isolation', expect.stringContaining('SVC_REPLICA_PORT')],
          ['outbound', 'direct'],
          ['system call filter', 'none: it needs an isolation'],
          ['limits', expect.stringMatching(/; none on the disk$/)],
          ['GPUs', 'none'],
          ['regions', 'a, b (refusing)'],
        ],
        sharedPorts: expect.any(String),
      });
    },
  );
});

test('a forced isolation that is unavailable disables the provider with the reason', async () => {
  await withLocalProvider({ isolation: 'podman' }, async (fixture) => {
    const { enabled, summary } = await fixture.provider.check({});
    expect([enabled, summary]).toEqual([false, expect.stringContaining("'podman' is not built into this version")]);
    expect(codeOf(await fixture.machine('a').catch((error: unknown) => error))).toBe('SVC_ISOLATION');
  });
});

test('without isolation each machine has its own port, and check explains why', async () => {
  await withLocalProvider({ isolation: 'none' }, async (fixture) => {
    expect((await fixture.provider.check({})).sharedPorts).toBe('isolation is turned off on this computer');
    const [a, b] = [(await fixture.machine('a')).remote, (await fixture.machine('b')).remote];
    expect(await a.address(8080)).toEqual({ kind: 'tcp', host: '127.0.0.1', port: Number(a.environment['SVC_REPLICA_PORT']) });
    expect(a.environment['SVC_REPLICA_PORT']).not.toBe(b.environment['SVC_REPLICA_PORT']);
  });
});
