import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runInProcess, runWithTime, type CliOptions, type CliResult } from '../../../test/support/cli-world.ts';
import type { FakeRoutes } from '../../../test/support/fake-client.ts';
import { anOffer } from '../../../test/support/builders.ts';
import { providersOf } from '../../../test/support/providers.ts';
import { aStubProvider } from '../../../test/support/stub-provider.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { aReplicaView, aServiceView, anEventView } from '../../../test/support/views.ts';
import { ProviderRefusal } from '../../providers/provider-refusal.ts';
import type { MachineSpec } from '../../providers/provider.ts';
import { SvcError } from '../../shared/errors.ts';

const file = `
envs:
  MODEL: small
service:
  readiness_probe: /health
  replicas: 2
resources:
  ports: 8080
run: python3 -m http.server 8080
`;

const starting = aServiceView({ status: 'CONTROLLER_INIT', targetReplicas: 2, replicas: [] });
const ready = aServiceView({ targetReplicas: 2, replicas: [aReplicaView()] });

/** A service that becomes ready once its events have been read. */
function comingUp(): FakeRoutes {
  let isReady = false;
  return {
    createService: ({ body }) => ({ service: { ...starting, name: body.name ?? 'svc-1a2b' } }),
    getService: ({ params }) => ({ ...(isReady ? ready : starting), name: params.name }),
    async *serviceEvents({ query }) {
      expect(query?.follow).toBe(true);
      yield anEventView({ id: 1, replicaId: null, to: 'CONTROLLER_INIT', cause: 'up', message: 'Put up.' });
      yield anEventView({ id: 1, replicaId: null, to: null, cause: 'balancer-up', message: 'The balancer runs (process 7).' });
      yield anEventView({ id: 1, replicaId: null, to: 'REPLICA_INIT', cause: 'derived', message: 'The service is REPLICA_INIT.' });
      yield anEventView({ id: 2, message: 'Asked for a machine.' });
      isReady = true;
      yield anEventView({ id: 3, to: 'READY', message: 'The probe was answered with 200.' });
    },
  };
}

/** Runs the command in a folder with the file. */
async function up(args: readonly string[], options: CliOptions = {}, content = file): Promise<CliResult & { readonly cwd: string }> {
  return withTempHome(async (cwd) => {
    writeFileSync(join(cwd, 'service.yaml'), content);
    return { ...(await runWithTime(['serve', 'up', 'service.yaml', ...args], { ...options, cwd })), cwd };
  });
}

const rented = providersOf(
  aStubProvider({
    name: 'aws',
    offers: async () => ({
      offers: [
        anOffer({
          provider: 'aws',
          region: 'us-east-2',
          zone: 'us-east-2a',
          instanceType: 'g6.xlarge',
          hourlyUsd: 0.81,
          accelerator: { name: 'L4', count: 1 },
        }),
        anOffer({ provider: 'aws', region: 'eu-west-1', instanceType: 'g6.xlarge', hourlyUsd: 0.9 }),
      ],
      whyNone: undefined,
    }),
  }),
);

test('a paid service needs confirmation; Enter means yes, and no deploys nothing', async () => {
  const yes = await up(['-n', 'chat', '--no-wait'], { routes: comingUp(), providers: rented, tty: true, input: '\r', width: 110 });
  expect(yes.code).toBe(0);
  expect(yes.stderr).toContain('Put it up for about 1.62 $/h?');
  expect(yes.stderr).toMatch(/^1-2 +aws\/us-east-2a +g6.xlarge +4 +16 +L4:1 +- +0.81 +591.30 +the best/m);
  expect(yes.stderr).toContain('2 replicas: 1.62 $/h, 1182.60 $/month (730 hours), without traffic.');
  const no = await up(['-n', 'chat'], { routes: comingUp(), providers: rented, tty: true, input: 'n' });
  expect([no.code, no.calls]).toEqual([4, []]);
});

test('without a terminal, a paid service requires --yes', async () => {
  const refused = await up([], { routes: comingUp(), providers: rented });
  expect(refused).toMatchObject({ code: 2, calls: [] });
  expect(refused.stderr).toContain('Put it up for about 1.62 $/h? There is no terminal to ask on.');
  expect((await up(['--yes', '--no-wait'], { routes: comingUp(), providers: rented })).code).toBe(0);
});

test('a task without any offer is refused before a controller is started', async () => {
  const none = providersOf(aStubProvider({ name: 'aws', offers: async () => ({ offers: [], whyNone: 'It has no H100.' }) }));
  const { code, stderr, calls } = await up([], { routes: comingUp(), providers: none });
  expect([code, calls]).toEqual([6, []]);
  expect(stderr).toContain('aws: It has no H100.');
});

test('up into a pipe prints only the endpoint on standard output', async () => {
  const { code, stdout, stderr, calls, cwd } = await up(['-n', 'chat', '--env', 'MODEL=large', '--secret', 'KEY'], {
    routes: comingUp(),
    env: { KEY: 'hidden-value' },
  });
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'http://127.0.0.1:30001\n' });
  expect(stderr).toMatchInlineSnapshot(`
    "Readiness probe method:           GET /health
    Readiness initial delay seconds:  1200
    Readiness probe timeout seconds:  15
    Replica autoscaling policy:       Fixed 2 replicas
    Load balancing policy:            least_load
    Service 'chat' is coming up at http://127.0.0.1:30001
      See status    svc serve status chat
      Read logs     svc serve logs chat
      Take it down  svc serve down chat
    "
  `);
  expect(stderr).not.toContain('hidden-value');
  expect(calls).toEqual([
    {
      name: 'createService',
      input: {
        body: { source: file, file: join(cwd, 'service.yaml'), envs: { MODEL: 'large' }, secrets: { KEY: 'hidden-value' }, name: 'chat' },
        timeoutMs: 600_000,
      },
    },
  ]);
});

test('on a terminal, up follows until ready and prints the next commands', async () => {
  const { code, stdout, stderr } = await up([], { routes: comingUp(), tty: true });
  expect(code).toBe(0);
  expect(stdout).toMatchInlineSnapshot(`
    "✓ Service 'svc-1a2b' is ready (1 of 2 replicas).

      Endpoint      http://127.0.0.1:30001

      See status    svc serve status svc-1a2b
      Read logs     svc serve logs svc-1a2b
      Take it down  svc serve down svc-1a2b
    "
  `);
  expect(stderr).toContain('  replica 1    Asked for a machine.\n');
  expect(stderr).toContain('Waiting for the first replica to be ready');
  expect(stderr.endsWith('\r\u001B[2K')).toBe(true);
});

test('--wait into a pipe follows in plain lines', async () => {
  const { code, stdout, stderr } = await up(['--wait'], { routes: comingUp() });
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'http://127.0.0.1:30001\n' });
  expect(stderr).toMatch(
    /coming up at \S+\n {2}replica 1    Asked for a machine\.\n {2}replica 1    The probe was answered with 200\.\nService 'svc-1a2b' is ready\.\n {2}See status/,
  );
  expect(stderr).not.toContain('\u001B');
});

test('on a narrow terminal, events are wrapped between words', async () => {
  let polls = 0;
  const { stderr } = await up([], {
    routes: {
      ...comingUp(),
      async *serviceEvents() {
        yield anEventView({ message: 'Machine b48047c9 at local/local is up; the program was started.' });
      },
      getService: ({ params }) => ({ ...(polls++ > 1 ? ready : starting), name: params.name }),
    },
    tty: true,
    width: 50,
  });
  expect(stderr).toContain('  replica 1    Machine b48047c9 at local/local is\n               up; the program was started.\n');
});

test('up reports an exposed endpoint', async () => {
  const exposed = { ...ready, exposed: true, endpoint: 'http://192.0.2.7:30001' };
  const { stdout, stderr } = await up(['--expose', '-n', 'chat'], { routes: { createService: () => ({ service: exposed }) } });
  expect(stdout).toBe('http://192.0.2.7:30001\n');
  expect(stderr).toContain("Service 'chat' is coming up at http://192.0.2.7:30001 (exposed: other machines reach it)\n");
});

test("a controller's warning is printed on standard error", async () => {
  const warning = 'Port 30001 is not protected.';
  const { stdout, stderr } = await up(['-n', 'chat'], { routes: { createService: () => ({ service: ready, warning }) } });
  expect(stdout).toBe(`${ready.endpoint}\n`);
  expect(stderr).toContain(`Warning: ${warning}\n`);
});

test('a name that is too long is refused with the limit', async () => {
  const { code, stderr } = await up(['-n', 'x'.repeat(51)]);
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('hint: Use at most 50 characters; this name has 51.\n') });
});

test('a service that the controller refuses is reported without a summary', async () => {
  const { stderr } = await up([], {
    routes: {
      createService() {
        throw new SvcError('SVC_NO_GPU', 'No GPU.');
      },
    },
  });
  expect(stderr).toMatch(/^error: No GPU\.\n/);
});

test('with --no-wait, or without a first replica, up returns at once on a terminal', async () => {
  const { calls, stdout } = await up(['--no-wait'], { routes: comingUp(), tty: true });
  expect(calls.map(({ name }) => name)).toEqual(['createService']);
  expect(stdout).toContain('http://127.0.0.1:30001');
  const scaled = file.replace('replicas: 2', 'replica_policy: {min_replicas: 0, max_replicas: 2, target_qps_per_replica: 1}');
  const atZero = await up([], { routes: comingUp(), tty: true }, scaled);
  expect([atZero.calls.length, atZero.stderr]).toEqual([1, expect.stringContaining('It has no replica yet (min_replicas: 0).')]);
});

test('--wait --json prints only the final service', async () => {
  const { stdout } = await up(['--wait', '--json', '-n', 'chat'], { routes: comingUp() });
  expect(JSON.parse(stdout)).toEqual(ready);
});

test('endpoint options and --workdir are sent to the controller', async () => {
  const { calls, cwd } = await up(['--service-name', 'chat', '--expose', '--endpoint-port', '4000', '--workdir', '.'], {
    routes: comingUp(),
  });
  expect(calls[0]?.input).toMatchObject({ body: { name: 'chat', expose: true, port: 4000, workdir: cwd } });
});

test('a failed service ends up with its reason and the log command of the same replica', async () => {
  const failed = aServiceView({
    status: 'FAILED',
    reason: 'its replicas keep failing (see: svc serve logs chat 3): run ended with exit code 3\nno weights found',
    replicas: [aReplicaView({ id: 2, status: 'FAILED' }), aReplicaView({ id: 3, status: 'SHUTTING_DOWN' })],
  });
  const { code, stdout, stderr } = await up(['--wait', '-n', 'chat'], { routes: { ...comingUp(), getService: () => failed } });
  expect({ code, stdout }).toEqual({ code: 70, stdout: '' });
  expect(stderr).toMatch(/error: Service 'chat' failed: its replicas keep failing .*: run ended with exit code 3\nno weights found\n/);
  expect(stderr).toMatch(/hint: Read the log: svc serve logs chat 3.*svc serve down chat\ncode: SVC_SERVICE_FAILED/);
});

test("a failed service without a reason shows the replica's reason", async () => {
  const failed = aServiceView({
    status: 'FAILED',
    replicas: [aReplicaView({ id: 3, status: 'FAILED', reason: 'Its run ended with exit code 3.' })],
  });
  const { stderr } = await up(['--wait', '-n', 'chat'], { routes: { ...comingUp(), getService: () => failed } });
  expect(stderr).toContain("error: Service 'chat' failed: replica 3: Its run ended with exit code 3.\n");
});

test('failed replicas do not end the wait while more are launched', async () => {
  const replicas = [aReplicaView({ status: 'FAILED', reason: 'Its run ended with exit code 3.' })];
  let polls = 0;
  const getService = (): typeof ready => (polls++ < 4 ? aServiceView({ status: 'REPLICA_INIT', replicas }) : ready);
  expect(await up(['--wait'], { routes: { ...comingUp(), getService } })).toMatchObject({ code: 0, stdout: 'http://127.0.0.1:30001\n' });
});

test('when the controller dies, up resumes from the last event', async () => {
  const afters: unknown[] = [];
  let polls = 0;
  const routes: FakeRoutes = {
    ...comingUp(),
    getService() {
      polls += 1;
      return polls > 3 ? ready : starting;
    },
    async *serviceEvents({ query }) {
      afters.push(query?.after);
      yield anEventView({ id: 10 + afters.length, message: `Event ${afters.length}.` });
      throw new SvcError('SVC_CONTROLLER_UNREACHABLE', 'The controller went away.');
    },
  };
  const { code, stderr } = await up(['--wait'], { routes });
  expect({ code, afters }).toEqual({ code: 0, afters: [0, 11, 12] });
  expect(stderr).toContain('Event 1.');
});

test('up ends with an error when the service is terminated', async () => {
  const { code, stderr } = await up(['--wait'], {
    routes: { ...comingUp(), getService: () => aServiceView({ status: 'SHUTTING_DOWN', replicas: [] }) },
  });
  expect(code).toBe(3);
  expect(stderr).toContain('is being terminated');
});

test('Ctrl-C leaves the service running and prints the down command', async () => {
  const interrupt = new AbortController();
  const routes: FakeRoutes = {
    ...comingUp(),
    async *serviceEvents() {
      yield anEventView();
      interrupt.abort();
    },
  };
  const { code, stdout, stderr } = await up(['--wait', '-n', 'chat'], { routes, interrupt });
  expect({ code, stdout }).toEqual({ code: 130, stdout: '' });
  expect(stderr).toContain("Service 'chat' goes on coming up. To take it down: svc serve down chat\n");
});

test("Ctrl-C before the controller's answer suggests the status command", async () => {
  const interrupt = new AbortController();
  const routes: FakeRoutes = {
    createService() {
      interrupt.abort();
      throw new Error('aborted');
    },
  };
  const { code, stderr } = await up([], { routes, interrupt });
  expect(code).toBe(130);
  expect(stderr).toContain('svc serve status');
});

test.for<readonly [name: string, content: string, args: readonly string[], code: string, exit: number]>([
  ['a bad name', file, ['-n', '1chat'], 'SVC_BAD_NAME', 2],
  ['a file without a service', 'run: true\n', [], 'SVC_INVALID_TASK', 2],
  ['a misspelt field', file.replace('replicas', 'replica'), [], 'SVC_INVALID_TASK', 2],
  ['a variable without a value', file.replace('small', 'null'), [], 'SVC_MISSING_ENV', 2],
  ['a missing workdir', `${file}workdir: ./nowhere\n`, [], 'SVC_FILE_NOT_FOUND', 3],
  [
    'an invalid certificate',
    file.replace('replicas: 2', 'tls: {keyfile: service.yaml, certfile: service.yaml}'),
    [],
    'SVC_BAD_CERTIFICATE',
    2,
  ],
  ['an unsupported field', `${file}file_mounts: {/out: {name: results, store: s3, mode: MOUNT}}\n`, [], 'SVC_NOT_SUPPORTED', 2],
  ['several nodes on a provider of single machines', `${file}num_nodes: 2\n`, [], 'SVC_NO_PLACE', 6],
])('%s is refused before a controller is started', async ([, content, args, code, exit]) => {
  const result = await up(args, {}, content);
  expect({ code: result.code, stdout: result.stdout }).toEqual({ code: exit, stdout: '' });
  expect(result.stderr).toContain(`code: ${code}\n`);
});

test('launch sends the task, follows it and reports its result', async () => {
  await withTempHome(async (cwd) => {
    mkdirSync(join(cwd, 'code'));
    writeFileSync(join(cwd, 'task.yaml'), 'workdir: code\nrun: echo hello\n');
    const cluster = {
      name: 'dev',
      status: 'UP',
      launchedAt: '2030-01-01T11:00:00.000Z',
      provider: null,
      region: null,
      resources: null,
      hourlyUsd: null,
      reason: null,
      ports: [],
    } as const;
    const job = { id: 4, name: null, status: 'SUCCEEDED', createdAt: '2030-01-01T11:00:00.000Z', endedAt: null, exitCode: 0 } as const;
    const routes: FakeRoutes = {
      launch: () => ({ cluster: { ...cluster, jobs: [] }, jobId: 4 }),
      clusterLogs: () => ['hello\n'],
      listClusters: () => ({ clusters: [{ ...cluster, jobs: [job] }] }),
    };
    const { code, stdout, stderr, calls } = await runInProcess(['launch', 'task.yaml', '-c', 'dev'], { routes, cwd });
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: 'hello\n',
      stderr: "Job 4 on cluster 'dev'.\nJob 4 on 'dev': SUCCEEDED (exit code 0)\n",
    });
    expect(calls[0]?.input).toMatchObject({ body: { mode: 'launch', cluster: 'dev', file: join(cwd, 'task.yaml') } });
  });
});

/** A Kubernetes cluster that costs nothing, as one of several locations. */
const cluster = (region: string, refusal: ProviderRefusal | undefined) => ({
  offers: [anOffer({ provider: 'kubernetes', region, hourlyUsd: 0 })],
  refusal,
});

test('a pod that the Kubernetes cluster would refuse is reported before the deploy', async () => {
  const said = 'The cluster prod refuses a pod of 1CPU--2GB+: no PriorityClass with name nope was found';
  const { offers, refusal } = cluster('prod', new ProviderRefusal('setup', 'region', said, { hint: 'Correct it there.' }));
  const shown: MachineSpec[] = [];
  const provider = aStubProvider({
    name: 'kubernetes',
    offers: async () => ({ offers, whyNone: undefined }),
    preflight: async (_, spec) => {
      shown.push(spec);
      if (refusal !== undefined) throw refusal;
    },
  });
  const result = await up([], { routes: comingUp(), providers: providersOf(provider) });
  expect(result.calls).toEqual([]);
  expect(result.stderr).toContain('No provider accepts a replica of this task.');
  expect(result.stderr).toContain(`kubernetes/prod: ${said}. Correct it there.`);
  expect(result.stderr).toContain('SVC_REFUSED_THERE');
  expect(shown).toMatchObject([{ ports: [8080], role: 'replica', nodes: 1 }]);
});

test('a refusing Kubernetes context is noted and skipped when another location accepts', async () => {
  const [prod, other] = [
    cluster('prod', new ProviderRefusal('quota', 'region', 'The cluster prod refuses: exceeded quota: few')),
    cluster('other', undefined),
  ];
  const provider = aStubProvider({
    name: 'kubernetes',
    offers: async () => ({ offers: [...prod.offers, ...other.offers], whyNone: undefined }),
    preflight: async ({ region }) => {
      if (region === 'prod' && prod.refusal !== undefined) throw prod.refusal;
    },
  });
  const result = await up([], { routes: comingUp(), providers: providersOf(provider) });
  expect(result.code).toBe(0);
  expect(result.stderr).toMatch(/Not at kubernetes\/prod: refused \(quota\) until .*: The cluster prod refuses: exceeded quota: few/);
});
