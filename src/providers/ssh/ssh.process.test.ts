import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aMachineSpec, someResources } from '../../../test/support/builders.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { expectNoLeaks, killProcessesOf, processesOf } from '../../../test/support/leaks.ts';
import { openSshProvider, pretendReboot, type SshProviderFixture } from '../../../test/support/ssh-provider.ts';
import { FakeSshHosts, type FakeSshHost, type FakeSshHostOptions } from '../../../test/support/fake-ssh-hosts.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { jobLogPath, jobStatus, startJob } from '../../provision/job.ts';
import type { Remote } from '../../remote/remote.ts';
import { dialReplica } from '../../shared/system/dial.ts';
import { SvcError } from '../../shared/errors.ts';
import { providerCases } from '../conformance.ts';
import type { MachineId } from '../provider.ts';

interface World extends SshProviderFixture {
  readonly hosts: readonly FakeSshHost[];
  /** Another home, whose pools name the same SSH hosts. */
  readonly otherHome: () => SshProviderFixture;
}

async function withHosts(options: readonly FakeSshHostOptions[], use: (world: World) => Promise<void>, clock?: FakeClock): Promise<void> {
  await withTempHome(async (dir) => {
    const standIns = new FakeSshHosts(dir);
    const hosts = options.map((one, index) => standIns.add(`h${index + 1}`, one));
    const settings = { hosts: hosts.map(({ entry }) => entry), open: standIns.open, ...(clock === undefined ? {} : { clock }) };
    const fixture = openSshProvider({ ...settings, home: join(dir, 'svc') });
    let homes = 0;
    try {
      await use({ ...fixture, hosts, otherHome: () => openSshProvider({ ...settings, home: join(dir, `svc${(homes += 1)}`) }) });
      for (const host of hosts) host.isUnreachable = false;
      for (const { id } of await fixture.open().list({}, {})) await fixture.provider.destroy(id, {});
      await expectNoLeaks(dir);
    } finally {
      await killProcessesOf(dir);
    }
  });
}

/** Without the tools that isolation on an SSH host needs. */
const plainTools = [
  'flock setsid timeout awk grep find cat head mkfifo dd tail mkdir mv rm chmod df sort stat uname id',
  'nproc getconf sed sleep date env ls ln sh tr wc touch mktemp sync kill pwd node',
].flatMap((line) => line.split(' '));

const codeOf = (error: unknown): string => (error instanceof SvcError ? error.code : String(error));
const refusal = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'no refusal',
    (error: unknown) => error,
  );

const echoServer = `require('net').createServer({ allowHalfOpen: true }, (s) => s.pipe(s)).listen(Number(process.env.PORT || process.env.SVC_REPLICA_PORT))`;

async function serve(remote: Remote, env: Readonly<Record<string, string>> = {}): Promise<void> {
  await startJob(remote, 'main', {
    run: `exec "$NODE" -e "${echoServer}"`,
    env: { NODE: process.execPath, ...env },
    workdir: `${remote.baseDir}/workdir`,
  });
}

async function echoes(remote: Remote, port: number, text: string): Promise<string> {
  const socket = await waitFor(
    'an answer',
    async () => dialReplica(await remote.address(port), { timeoutMs: 5_000 }).catch(() => undefined),
    { describe: () => remote.readFile(jobLogPath(remote, 'main')) },
  );
  socket.end(text);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test.concurrent.for(providerCases)('ssh: $name', async ({ run }) => {
  await withHosts([{}], async (world) => {
    const [host] = world.hosts;
    if (host === undefined) throw new Error('no host');
    // A share of the SSH host that another machine can take.
    const resources = someResources({ memory: { value: 1, atLeast: true } });
    const fixture = {
      provider: world.provider,
      other: world.open(),
      resources,
      async refuse() {
        const other = world.otherHome();
        const { offers } = await other.offers({ memory: { value: 1, atLeast: true } });
        const [offer] = offers;
        if (offer === undefined) throw new Error('no offer');
        await other.provider.create({ ...offer, instanceType: 'shared host' }, aMachineSpec({ tags: { of: 'another home' } }), 'hog', {});
        for (const file of globSync(join(host.home, '.svc/machines/*/machine.json'))) {
          const record = Object(JSON.parse(readFileSync(file, 'utf8')));
          if (record.tags.of === 'another home')
            writeFileSync(file, `${JSON.stringify({ ...record, pool: 'theirs', memoryGb: 1_000_000 })}\n`);
        }
      },
      preemptAll: () => Promise.resolve(pretendReboot(host.home)),
      untilRunning: () => Promise.resolve(),
    };
    await expect(run(fixture)).resolves.toBeUndefined();
    for (const file of globSync(join(host.home, '.svc/machines/*/machine.json'))) {
      const record = Object(JSON.parse(readFileSync(file, 'utf8')));
      writeFileSync(file, `${JSON.stringify({ ...record, pool: 'lab' })}\n`);
    }
  });
});

test('replicas on one SSH host serve the same port and leave nothing behind', async () => {
  await withHosts([{}], async ({ provider, create, hosts: [host] }) => {
    const ids = [await create('a'), await create('b')];
    const remotes = ids.map((id) => provider.remote(id));
    for (const [index, remote] of remotes.entries()) await serve(remote, { PORT: '80', WHO: String(index) });
    for (const remote of remotes) {
      expect(remote.enter).not.toEqual([]);
      expect(await remote.address(80)).toMatchObject({ kind: 'unix', port: 80 });
      expect(await echoes(remote, 80, 'over')).toBe('over');
    }
    for (const id of ids) await provider.destroy(id, {});
    expect(readdirSync(join(host?.home ?? '', '.svc/machines')).filter((name) => name !== 'revision')).toEqual([]);
    expect(processesOf(join(host?.home ?? '', '.svc/machines'))).toEqual([]);
  });
});

test('without isolation a taken port is refused, or replaced if the program follows', async () => {
  await withHosts([{ tools: plainTools }], async ({ provider, create }) => {
    const check = await provider.check({});
    expect(check.details[0]?.[1]).toMatch(
      /isolation: none.*not userns: it has no unshare, setpriv, ip|not root: it has no unshare, setpriv, ip/,
    );
    expect(check.details[0]?.[1]).toMatch(/; system call filter: none: it needs an isolation; limits: .*; none on the disk$/);
    expect(check.remedies).toContainEqual(expect.stringMatching(/^lab\/h1: Install util-linux and iproute2 there/));
    const first = provider.remote(await create('a', {}, { ports: [18_080] }));
    expect(first.environment['SVC_REPLICA_PORT']).toBeUndefined();
    expect(String(await refusal(create('b', {}, { ports: [18_080] })))).toMatch(
      /Another machine has port 18080 of the host h1, which cannot isolate/,
    );
    const second = provider.remote(await create('b', {}, { ports: [18_080], followsPort: true }));
    const ownPort = second.environment['SVC_REPLICA_PORT'];
    expect(Number(ownPort)).toBeGreaterThanOrEqual(20_000);
    await serve(second, { SVC_REPLICA_PORT: '18080' });
    expect(await echoes(second, 18_080, 'here')).toBe('here');
  });
});

test('a machine without isolation is removed only after its processes have ended', async () => {
  await withHosts([{ tools: plainTools }], async ({ provider, create, hosts: [host] }) => {
    const id = await create('a', {}, { ports: [18_081] });
    const remote = provider.remote(id);
    // An abstract socket name, as in the tests of `local`. It is free again when the kernel has closed the process's
    // files, after it reclaimed the process's memory.
    const name = `\0${host?.home}`;
    const program = `const memory = Buffer.alloc(400_000_000, 1); require('net').createServer().listen(String.fromCharCode(0) + process.env.HELD, () => console.log('holds', memory.length))`;
    const env = { NODE: process.execPath, HELD: name.slice(1) };
    await startJob(remote, 'main', { run: `exec "$NODE" -e "${program}"`, env, workdir: `${remote.baseDir}/workdir` });
    await waitFor('the program', async () => (await remote.readFile(jobLogPath(remote, 'main')))?.includes('holds 4'));
    await provider.destroy(id, {});
    const server = createServer();
    const taken = await new Promise((resolve) => server.once('error', resolve).listen(name, () => resolve(undefined)));
    server.close();
    expect(taken).toBeUndefined();
  });
});

const visible = (fixture: SshProviderFixture, id: MachineId): string | undefined =>
  fixture.provider.remote(id).environment['CUDA_VISIBLE_DEVICES'];

test('a GPU is allotted to one machine, also with concurrent creates by two homes', async () => {
  const programs = { 'nvidia-smi': `printf '0, NVIDIA L4, 23034\\n1, NVIDIA L4, 23034\\n2, Tesla T4, 15360\\n'` };
  await withHosts([{ programs }], async (world) => {
    expect((await world.provider.check({})).details[0]?.[1]).toContain('GPUs: 2x NVIDIA L4, 1x Tesla T4');
    const l4 = { accelerator: { name: 'l4', count: 1 } };
    expect((await world.offers(l4)).offers).toMatchObject([{ zone: 'h1', accelerator: { name: 'L4', count: 1 } }]);
    const other = world.otherHome();
    const [mine, theirs] = await Promise.all([world.create('a', l4), other.create('b', l4)]);
    expect(new Set([visible(world, mine), visible(other, theirs)])).toEqual(new Set(['0', '1']));
    expect(visible(world, await world.create('none'))).toBe('');
    const { offers, whyNone, isFull } = await world.offers(l4);
    expect([offers, whyNone, isFull]).toEqual([[], expect.stringContaining('lab/h1 has 0 of 2 L4 free, 1 requested'), true]);
    expect((await world.offers({ accelerator: { name: 'l4', count: 3 } })).isFull).toBeUndefined();
    await other.provider.destroy(theirs, {});
    expect((await world.offers(l4)).offers).toHaveLength(1);
    expect(
      (await world.offers({ acceleratorMemory: { value: 16, atLeast: true, count: 1, manufacturer: undefined } })).offers,
    ).toMatchObject([{ accelerator: { name: 'NVIDIA L4' } }]);
  });
});

test('requested shares are reserved, and a request beyond the rest is refused with reasons', async () => {
  await withHosts([{ programs: { nproc: 'echo 8' } }, { programs: { nproc: 'echo 4' }, hourlyUsd: 2 }], async ({ offers, create }) => {
    const six = { cpus: { value: 6, atLeast: true } };
    expect((await offers(six)).offers).toMatchObject([{ zone: 'h1', cpus: 6, instanceType: '6 CPUs' }]);
    await create('a', six);
    expect((await offers(six)).whyNone).toBe(
      'No host has what is asked for (6+ CPUs): lab/h1 has 2 of 8 CPUs free, 6 requested; lab/h2 has 4 CPUs, 6 requested.',
    );
    expect((await offers({ cpus: { value: 2, atLeast: false } })).offers.map(({ zone, hourlyUsd }) => [zone, hourlyUsd])).toEqual([
      ['h1', 0],
      ['h2', 2],
    ]);
    // A machine that requests nothing shares the SSH host's resources.
    expect((await offers()).offers.map(({ zone }) => zone)).toEqual(['h1', 'h2']);
    expect((await offers({ region: 'lap' })).whyNone).toBe("There is no pool 'lap' (there are: lab). Did you mean 'lab'?");
  });
});

test('an unreachable SSH host is cordoned alone and returns by itself', async () => {
  await withHosts([{}, {}], async ({ provider, offers, hosts: [first] }) => {
    const [lost, other] = (await offers()).offers;
    if (first === undefined || lost === undefined || other === undefined) throw new Error('no host');
    first.isUnreachable = true;
    // By a launch that has chosen the host before the loss. A wider scope would hold up the whole pool.
    expect(await refusal(provider.create(lost, aMachineSpec(), 'a', {}))).toMatchObject({ refusal: 'capacity', scope: 'zone' });
    expect((await offers()).offers.map(({ zone }) => zone)).toEqual(['h2']);
    const { enabled, summary, details } = await provider.check({});
    expect([enabled, summary]).toEqual([true, '1 of 2 hosts in 1 pool can be used']);
    expect(details[0]).toEqual(['lab/h1', 'The machine h1 does not answer over SSH: cut']);
    first.isUnreachable = false;
    await waitFor('its return', async () => (await offers()).offers.length === 2);
  });
});

test('an unreachable SSH host counts as lost after minutes; its machines return with it', async () => {
  const clock = new FakeClock();
  await withHosts(
    [{}, {}],
    async ({ provider, create, hosts: [host, other], open }) => {
      if (host === undefined || other === undefined) throw new Error('no host');
      const id = await create('a');
      await serve(provider.remote(id), { PORT: '80' });
      await waitFor('its beginning', async () => (await jobStatus(provider.remote(id), 'main')).phase === 'run');
      host.isUnreachable = true;
      const state = async (): Promise<unknown> => (await provider.inspect([id], {})).get(id);
      for (let second = 0; second < 170; second += 10) {
        expect(await state()).toEqual({ state: 'running' });
        await clock.advance(10_000);
      }
      await clock.advance(20_000);
      expect(await state()).toEqual({ state: 'gone', reason: 'unknown' });
      // No process may conclude that it was removed.
      for (const one of [provider, open()]) {
        expect(codeOf(await refusal(one.list({ 'svc-key': 'a' }, {})))).toBe('SVC_SSH');
        expect(codeOf(await refusal(one.list({ 'svc-service-key': 'k' }, {})))).toBe('SVC_SSH');
        expect(codeOf(await refusal(one.destroy(id, {})))).toBe('SVC_SSH');
        // A list of machines that the SSH host cannot have still works.
        expect(await one.list({ 'svc-key': 'b' }, {})).toEqual([]);
      }
      expect((await provider.check({})).enabled).toBe(true);
      host.isUnreachable = false;
      await clock.advance(61_000);
      expect(await state()).toEqual({ state: 'running' });
      expect((await jobStatus(provider.remote(id), 'main')).phase).toBe('run');
      await provider.destroy(id, {});
      expect(await provider.list({ 'svc-service-key': 'k' }, {})).toEqual([]);
    },
    clock,
  );
});

test('a reboot preempts machines, and a machine removed by hand is deleted', async () => {
  await withHosts([{}], async ({ provider, create, hosts: [host] }) => {
    const [a, b] = [await create('a'), await create('b')];
    pretendReboot(host?.home ?? '');
    expect((await provider.inspect([a], {})).get(a)).toEqual({ state: 'gone', reason: 'preempted' });
    await provider.remote(b).exec(['rm', '-rf', join(provider.remote(b).baseDir, '..')]);
    expect((await provider.inspect([b], {})).get(b)).toEqual({ state: 'gone', reason: 'deleted' });
    await provider.destroy(b, {});
  });
});

test('a Node binary that another process just installed is the only copy', async () => {
  const programs = { mv: `case $2 in */.svc/bin/*) mkdir "$2"; ln "$1/node" "$2/node" ;; esac; exec /usr/bin/mv "$@"` };
  await withHosts([{ programs }], async ({ create, hosts: [host] }) => {
    await create('a');
    const [folder = '', ...rest] = readdirSync(join(host?.home ?? '', '.svc/bin'), { recursive: true });
    expect(rest).toEqual([`${String(folder)}/node`]);
  });
});

test('a full SSH host refuses machines with the reason until it has space', async () => {
  const programs = { df: `printf 'x\\nx 1 1 %s 1 x\\n' "$(cat "$HOME/free-kb" 2>/dev/null || echo 10000000)"` };
  await withHosts([{ programs }], async ({ provider, offers, create, hosts: [host] }) => {
    const { offers: before } = await offers();
    writeFileSync(join(host?.home ?? '', 'free-kb'), '51200\n');
    const [offer] = before;
    if (offer === undefined) throw new Error('no offer');
    const refused = await refusal(provider.create(offer, aMachineSpec(), 'a', {}));
    expect([codeOf(refused), String(refused)]).toEqual(['SVC_CAPACITY', expect.stringContaining('it has 50 MB of disk left')]);
    expect((await provider.check({})).details[0]?.[1]).toContain('it has 50 MB of disk left');
    expect(await provider.list({}, {})).toEqual([]);
    writeFileSync(join(host?.home ?? '', 'free-kb'), '10000000\n');
    expect(await create('a')).toBeTypeOf('string');
  });
});

test.for<readonly [what: string, programs: Readonly<Record<string, string>>, why: RegExp, remedy: RegExp]>([
  ['musl', { getconf: 'exit 1', ldd: 'echo "musl libc (x86_64)"' }, /musl, not glibc/, /glibc 2\.28 or newer/],
  ['an old glibc', { getconf: '[ "$1" = GNU_LIBC_VERSION ] && echo glibc 2.17' }, /its glibc is 2\.17, older than 2\.28/, /Upgrade/],
  ['another system', { uname: '[ "$1" = -s ] && echo FreeBSD || echo amd64' }, /it runs FreeBSD, not Linux/, /Linux/],
])('an SSH host with %s is not used, and check explains why', async ([, programs, why, remedy]) => {
  await withHosts([{ programs }], async ({ provider, offers }) => {
    const { enabled, details, remedies } = await provider.check({});
    expect(enabled).toBe(false);
    expect(details[0]?.[1]).toMatch(why);
    expect(remedies[0]).toMatch(remedy);
    expect((await offers()).whyNone).toMatch(why);
  });
});

test('an SSH host without a POSIX shell is unfit', async () => {
  await withHosts([{ programs: { sh: 'echo "This account is currently not available."; exit 1' } }], async ({ provider }) => {
    const { enabled, details, remedies } = await provider.check({});
    expect([enabled, details[0]?.[1]]).toEqual([
      false,
      'The host h1 has no POSIX shell that answers: This account is currently not available',
    ]);
    expect(remedies[0]).toContain('This must print "ok"');
  });
});

test('a home without inventory finds its machines, and reaches those of a removed pool', async () => {
  await withHosts([{}], async ({ provider, create, setHosts, open, paths, hosts: [host] }) => {
    const id = await create('a');
    setHosts([]);
    expect(await open().list({ 'svc-key': 'a' }, {})).toHaveLength(1);
    if (host === undefined) throw new Error('no host');
    setHosts([host.entry]);
    for (const file of globSync(join(paths.sshDir, 'machines/*'))) writeFileSync(file, 'cut sho');
    const fresh = open();
    expect(await fresh.list({ 'svc-key': 'a' }, {})).toEqual([{ id, tags: { 'svc-key': 'a', 'svc-service-key': 'k' } }]);
    expect((await fresh.remote(id).exec(['pwd'])).exitCode).toBe(0);
    expect(codeOf(await refusal(provider.remote(await createUnknown(id)).exec(['true'])))).toBe('SVC_MACHINE_LOST');
  });
});

/** The id of a machine that never existed. */
function createUnknown<Id extends string>(id: Id): Promise<Id> {
  return Promise.resolve(Object(id.replace(/.{4}$/, '0000')).valueOf());
}

test('destroy ends leftover processes, and removes write-protected and half-removed folders', async () => {
  await withHosts([{}], async ({ provider, create, hosts: [host] }) => {
    const [a, b] = [await create('a'), await create('b')];
    const remote = provider.remote(a);
    const setup = `(setsid sh -c "trap '' TERM HUP; sleep 300 & exec sleep 300" &) ; mkdir -p deep/er; touch deep/er/file; chmod 500 deep/er deep`;
    await startJob(remote, 'main', { setup, run: 'true', env: {}, workdir: `${remote.baseDir}/workdir` });
    await waitFor('its end', async () => (await jobStatus(remote, 'main')).phase === 'ended');
    await provider.destroy(a, {});
    const dir = join(host?.home ?? '', '.svc/machines', b.split('/').at(-1) ?? '');
    for (const name of ['machine.json', 'enter.sh']) writeFileSync(join(dir, name), '');
    mkdirSync(join(dir, 'destroying'));
    await provider.destroy(b, {});
    expect(existsSync(dir)).toBe(false);
    expect(processesOf(host?.home ?? '?')).toEqual([]);
  });
});

test('a try that was cut off with its host is removed by the next command', async () => {
  // The first try ends as in a power cut: nothing after it runs.
  const timeout = `case $* in
    */enter.sh*) [ -e "$HOME/cut" ] || { : > "$HOME/cut" && kill -s KILL "$PPID" && exit; } ;;
    esac
    exec /usr/bin/timeout "$@"`;
  await withHosts([{ programs: { timeout } }], async ({ create, otherHome, hosts: [host] }) => {
    const tries = (): string[] => globSync('.svc/try-*', { cwd: host?.home });
    await expect(create('a')).rejects.toThrow('was cut short');
    expect(tries()).toHaveLength(1);
    const other = otherHome();
    await other.provider.destroy(await other.create('a'), {});
    expect(tries()).toEqual([]);
  });
});

test('a try that still runs is kept by the commands of other homes', async () => {
  // The first try waits until the test lets it go on.
  const timeout = `case $* in
    */enter.sh*) ! mkdir "$HOME/held" 2>/dev/null || while [ ! -e "$HOME/held/end" ]; do sleep 0.05; done ;;
    esac
    exec /usr/bin/timeout "$@"`;
  await withHosts([{ programs: { timeout } }], async ({ create, otherHome, hosts: [host] }) => {
    const tries = (): string[] => globSync('.svc/try-*', { cwd: host?.home });
    const held = join(host?.home ?? '', 'held');
    const machine = create('a');
    await waitFor('the first try', () => existsSync(held));
    const running = tries();
    expect(running).toHaveLength(1);
    const other = otherHome();
    await other.provider.destroy(await other.create('a'), {});
    expect(tries()).toEqual(running);
    writeFileSync(join(held, 'end'), '');
    await machine;
    expect(tries()).toEqual([]);
  });
});
