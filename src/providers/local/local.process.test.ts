import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { aMachineSpec, someResources } from '../../../test/support/builders.ts';
import { processesOf } from '../../../test/support/leaks.ts';
import { withLocalPlace, type LocalPlace } from '../../../test/support/local-place.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { LocalRegion } from '../../domain/config.ts';
import type { Resources } from '../../domain/task.ts';
import { jobLogPath, jobStatus, startJob } from '../../provision/job.ts';
import type { Remote } from '../../remote/remote.ts';
import { dialReplica } from '../../shared/dial.ts';
import { SvcError } from '../../shared/errors.ts';
import { identifyProcess } from '../../shared/process-identity.ts';
import { providerCases } from '../conformance.ts';
import type { MachineId } from '../provider.ts';
import { machineFiles } from './machine-record.ts';

const region = (change: Partial<LocalRegion>): LocalRegion => ({
  name: 'local',
  state: 'up',
  refuseWith: 'capacity',
  maxMachines: undefined,
  ...change,
});

const spec = aMachineSpec();

async function createFor(place: LocalPlace, key: string, resources: Partial<Resources> = {}): Promise<MachineId> {
  const { offers, whyNone } = await place.provider.offers(someResources(resources), {});
  const [offer] = offers;
  if (offer === undefined) throw new Error(whyNone);
  return place.provider.create(offer, spec, key, {});
}

/** Runs shell commands on a machine as its program, to their end, and gives what they wrote. */
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
  await withLocalPlace({}, async (place) => {
    const fixture = {
      provider: place.provider,
      other: await place.open(),
      resources: someResources(),
      async refuse() {
        place.configure({ regions: [region({ state: 'refusing' })] });
        await Promise.resolve();
      },
      async preemptAll() {
        place.configure({ regions: [region({ state: 'lost' })] });
        await Promise.resolve();
      },
      untilRunning: () => Promise.resolve(),
    };
    await expect(run(fixture)).resolves.toBeUndefined();
  });
});

test('a region that is lost takes the processes of its machines with it, and gives no new ones', async () => {
  await withLocalPlace({ regions: [region({ name: 'a' }), region({ name: 'b' })] }, async (place) => {
    const [a, b] = [await createFor(place, 'a', { region: 'a' }), await createFor(place, 'b', { region: 'b' })];
    for (const id of [a, b]) {
      const remote = place.provider.remote(id);
      await startJob(remote, 'main', { run: 'exec sleep 300', env: {}, workdir: remote.baseDir });
    }
    place.configure({ regions: [region({ name: 'a', state: 'lost' }), region({ name: 'b' })] });
    const statuses = await place.provider.inspect([a, b], {});
    expect([statuses.get(a), statuses.get(b)]).toEqual([{ state: 'gone', reason: 'preempted' }, { state: 'running' }]);
    expect(processesOf(machineFiles(place.paths, a).dir)).toEqual([]);
    await waitFor('the job of the other region', async () => (await jobStatus(place.provider.remote(b), 'main')).phase === 'run');
    await expect(createFor(place, 'c', { region: 'a' })).rejects.toThrow(/region 'a' gives no machines: its state is 'lost'/);
  });
});

test('a region refuses with what it is told to, and beyond its number of machines', async () => {
  await withLocalPlace({ regions: [region({ maxMachines: 1, refuseWith: 'quota' })] }, async (place) => {
    const id = await createFor(place, 'a');
    const refusal = await createFor(place, 'b').catch((error: unknown) => error);
    expect([codeOf(refusal), String(refusal)]).toEqual(['SVC_QUOTA', expect.stringContaining("The region 'local' has 1 of 1 machines")]);
    await place.provider.destroy(id, {});
    await expect(createFor(place, 'b')).resolves.toBeTypeOf('string');
  });
});

test('GPUs are given to one machine at a time and seen by nobody else', async () => {
  await withLocalPlace({ gpus: { name: 'L4', count: 3 } }, async (place) => {
    const visible = (id: MachineId): string | undefined => place.provider.remote(id).environment['CUDA_VISIBLE_DEVICES'];
    const two = await createFor(place, 'two', { accelerator: { name: 'l4', count: 2 } });
    const none = await createFor(place, 'none');
    expect([visible(two), visible(none)]).toEqual(['0,1', '']);
    const refusal = await createFor(place, 'more', { accelerator: { name: 'L4', count: 2 } }).catch((error: unknown) => error);
    expect([codeOf(refusal), String(refusal)]).toEqual(['SVC_CAPACITY', expect.stringContaining('1 of 3 on this computer are free')]);
    await place.provider.destroy(two, {});
    expect(visible(await createFor(place, 'more', { accelerator: { name: 'L4', count: 3 } }))).toBe('0,1,2');
  });
});

test('a computer without GPUs sets no variable about them', async () => {
  await withLocalPlace({}, async (place) => {
    expect(Object.keys((await place.machine('a')).remote.environment)).toEqual(['SVC_COOKIE']);
  });
});

test('destroying ends daemons that setup left outside of the namespaces, and removes folders their owner may not change', async () => {
  await withLocalPlace({}, async (place) => {
    const { id, remote } = await place.machine('a');
    const setup = `(setsid sh -c "trap '' TERM HUP; sleep 300 & exec sleep 300" &) ; mkdir -p deep/er; touch deep/er/file; chmod 500 deep/er deep`;
    await outputOf(remote, 'true', 'main', setup);
    const daemons = () => processesOf(place.paths.home).filter(({ command }) => command === 'sleep 300');
    await waitFor('the daemons', () => daemons().length === 2);
    await place.provider.destroy(id, {});
    expect(processesOf(place.paths.home)).toEqual([]);
    expect(readdirSync(join(place.paths.localDir, 'machines'))).toEqual([]);
  });
});

test('a machine without isolation is removed when its processes have ended, not when they have begun to', async () => {
  await withLocalPlace({ isolation: 'none' }, async (place) => {
    const { id, remote } = await place.machine('a');
    // A name without a file: it is free again when the kernel has closed what the process had open, which it does after it took back its memory. That takes
    // a while where there is much of it, as with a model.
    const held = `\0${place.paths.home}`;
    const program = `const memory = Buffer.alloc(400_000_000, 1); require('net').createServer().listen(String.fromCharCode(0) + process.env.HELD, () => console.log('holds', memory.length))`;
    const env = { NODE: process.execPath, HELD: held.slice(1) };
    await startJob(remote, 'main', { run: `exec "$NODE" -e "${program}"`, env, workdir: remote.baseDir });
    await waitFor('the program', async () => (await remote.readFile(jobLogPath(remote, 'main')))?.includes('holds 4'));
    await place.provider.destroy(id, {});
    const server = createServer();
    const taken = await new Promise((resolve) => server.once('error', resolve).listen(held, () => resolve(undefined)));
    server.close();
    expect(taken).toBeUndefined();
  });
});

test('a machine whose folder is only half there is removed all the same', async () => {
  await withLocalPlace({}, async (place) => {
    const running = await place.machine('running');
    await startJob(running.remote, 'main', { run: 'exec sleep 300', env: {}, workdir: running.remote.baseDir });
    await waitFor('its beginning', async () => (await jobStatus(running.remote, 'main')).phase === 'run');
    const half = await place.machine('half');
    const files = machineFiles(place.paths, half.id);
    rmSync(files.record);
    rmSync(files.enter);
    writeFileSync(files.destroying, '');
    mkdirSync(join(place.paths.localDir, 'machines', '.new-0123-456'));
    expect((await place.provider.list({}, {})).map(({ id }) => id)).toEqual([running.id]);
    await place.provider.destroy(half.id, {});
    expect(existsSync(files.dir)).toBe(false);
    await place.machine('another');
    expect(readdirSync(join(place.paths.localDir, 'machines')).filter((name) => name.startsWith('.'))).toEqual([]);
    expect((await jobStatus(running.remote, 'main')).phase).toBe('run');
  });
});

test('nothing is started on a machine that is being destroyed', async () => {
  await withLocalPlace({}, async (place) => {
    const { id, remote } = await place.machine('a');
    writeFileSync(machineFiles(place.paths, id).destroying, '');
    await startJob(remote, 'main', { run: 'touch started', env: {}, workdir: remote.baseDir });
    await waitFor('the job to end', async () => (await jobStatus(remote, 'main')).phase === 'ended');
    expect(await remote.readFile(`${remote.baseDir}/started`)).toBeUndefined();
  });
});

test('each machine has a /tmp of its own, in which SVC_HOME stays where it is', async () => {
  await withLocalPlace({}, async (place) => {
    const [a, b] = [await place.machine('a'), await place.machine('b')];
    // What the machine needs stays visible when it lies below /tmp: SVC_HOME, this checkout with the runtime, and the user's home.
    const needed = [place.paths.home, process.cwd(), homedir()].filter((path) => path.startsWith('/tmp/'));
    const visible = [...new Set(['file', ...needed.map((path) => path.split('/')[2] ?? '')])].toSorted();
    expect(await outputOf(a.remote, 'echo mine > /tmp/file; ls /tmp; pwd')).toBe([...visible, `${a.remote.baseDir}/workdir`].join('\n'));
    expect(await outputOf(b.remote, 'cat /tmp/file || true')).toContain('No such file');
    expect(existsSync('/tmp/file')).toBe(false);
  });
});

test('a program has the rights of its user and no way to the rest of the computer', async () => {
  await withLocalPlace({}, async (place) => {
    const { remote } = await place.machine('a');
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

test('the way in comes back when its process is killed', async () => {
  await withLocalPlace({}, async (place) => {
    const { id, remote } = await place.machine('a');
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
    const forwarder = processesOf(machineFiles(place.paths, id).dir).find(({ command }) => command.includes('forwarder.mjs '));
    if (forwarder === undefined) throw new Error('no forwarder');
    process.kill(forwarder.pid, 'SIGKILL');
    await waitFor('its end', () => identifyProcess(forwarder.pid) === undefined);
    expect(await waitFor('another answer', dial)).toBe(true);
  });
});

test('bytes go both ways in full, and each side ends on its own', async () => {
  await withLocalPlace({}, async (place) => {
    const { remote } = await place.machine('a');
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

test('a program reaches other computers where this one can, but not what listens on loopback here', async ({ skip }) => {
  const address = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal)?.address;
  const server = createServer((socket) => socket.end('outside'));
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  const bound = server.address();
  try {
    await withLocalPlace({}, async (place) => {
      const { outbound } = JSON.parse(JSON.stringify(Object.fromEntries((await place.provider.check({})).details)));
      if (address === undefined || typeof bound !== 'object' || bound === null || !/slirp4netns|pasta/.test(String(outbound)))
        return skip();
      const { remote } = await place.machine('a');
      // An address of this very computer: no packet leaves it.
      const ask = (host: string): string =>
        `"$NODE" -e "const s = require('net').connect(${bound.port}, '${host}'); s.on('data', (d) => console.log(String(d))).on('error', (e) => console.log(e.code))"`;
      expect(await outputOf(remote, `${ask(address)}; ${ask('127.0.0.1')}`)).toBe('outside\nECONNREFUSED');
      return undefined;
    });
  } finally {
    server.close();
  }
});

test('check names the isolation, the way out, GPUs and regions', async () => {
  await withLocalPlace(
    { isolation: 'none', regions: [region({ name: 'a' }), region({ name: 'b', state: 'refusing' })] },
    async ({ provider }) => {
      expect(await provider.check({})).toEqual({
        enabled: true,
        summary: 'this computer; isolation: none (as set), outbound: host',
        remedies: expect.arrayContaining([expect.stringContaining('apt-get install')]),
        details: [
          ['isolation', expect.stringContaining('SVC_REPLICA_PORT')],
          ['outbound', 'direct'],
          ['GPUs', 'none'],
          ['regions', 'a, b (refusing)'],
        ],
        sharedPorts: expect.any(String),
      });
    },
  );
});

test('an isolation that is asked for and cannot be had disables the place and says so', async () => {
  await withLocalPlace({ isolation: 'podman' }, async (place) => {
    const { enabled, summary } = await place.provider.check({});
    expect([enabled, summary]).toEqual([false, expect.stringContaining("'podman' is not built into this version")]);
    expect(codeOf(await place.machine('a').catch((error: unknown) => error))).toBe('SVC_ISOLATION');
  });
});

test('without isolation each machine has a port of its own, and check says why', async () => {
  await withLocalPlace({ isolation: 'none' }, async (place) => {
    expect((await place.provider.check({})).sharedPorts).toBe('isolation is turned off on this computer');
    const [a, b] = [(await place.machine('a')).remote, (await place.machine('b')).remote];
    expect(await a.address(8080)).toEqual({ kind: 'tcp', host: '127.0.0.1', port: Number(a.environment['SVC_REPLICA_PORT']) });
    expect(a.environment['SVC_REPLICA_PORT']).not.toBe(b.environment['SVC_REPLICA_PORT']);
  });
});
