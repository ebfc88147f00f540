import { expect, test } from 'vitest';
import type { ServiceView } from '../../api/contract.ts';
import { aReplicaView, aServiceView } from '../../../test/support/views.ts';
import { renderServices, shortReason, toneOf, type ListingOptions } from './service-listing.ts';

const options: ListingOptions = {
  width: 200,
  now: Date.parse('2030-01-01T12:00:00Z'),
  verbose: false,
  paint: (_, text) => text,
  asTyped: (text) => text,
};

const services: readonly ServiceView[] = [
  aServiceView({
    name: 'chat',
    activeVersions: [1, 2],
    version: 2,
    uptimeSeconds: 176_405,
    replicas: [
      aReplicaView({ id: 1, launchedAt: '2029-12-30T10:59:55.000Z' }),
      aReplicaView({ id: 2, version: 2, status: 'PROVISIONING', endpoint: null, resources: null, launchedAt: null, hourlyUsd: null }),
      aReplicaView({
        id: 3,
        version: 2,
        provider: 'aws',
        region: 'eu-central-1',
        zone: 'eu-central-1a',
        resources: '1x(cpus=8, mem=32, L4:1)[spot]',
        spot: true,
        hourlyUsd: 0.3412,
        status: 'FAILED',
        endedAt: '2030-01-01T11:59:30.000Z',
        reason: 'run ended with exit code 3:\n\u001B[31mno weights found\u001B[0m',
      }),
    ],
  }),
  aServiceView({
    name: 'embeddings-for-search',
    status: 'FAILED',
    activeVersions: [],
    uptimeSeconds: null,
    endpoint: 'http://127.0.0.1:30002',
    replicas: [],
    reason: 'its replicas keep failing',
    autoscaling: 'Autoscaling from 1 to 3 replicas (target QPS per replica: 2.5)',
    requestedResources: '8+ CPU, L4:1',
  }),
];

test.for([60, 80, 200])('services and replicas in %d columns', (width) => {
  expect(renderServices(services, { ...options, width }).join('\n')).toMatchSnapshot();
});

const withoutReplicas = (change: Partial<ServiceView>) =>
  renderServices([aServiceView({ replicas: [], targetReplicas: 3, ...change })], options).join('\n');

test('the last scaling is shown with its reason', () => {
  const reason = '3.10 requests/s in the last minute: from 1 to 2 replicas.';
  const text = withoutReplicas({ lastScaling: { at: '2030-01-01T11:58:00.000Z', reason } });
  expect(text).toContain(`chat: last scaling (2 mins ago): ${reason}`);
});

test('a price limit in force is shown', () => {
  expect(withoutReplicas({ costLimited: 2 })).toContain('max_hourly_cost does not allow 2 more replicas');
});

test('a new service shows its desired number of replicas', () => {
  expect(withoutReplicas({ status: 'CONTROLLER_INIT' })).toContain(' 0/3 ');
  expect(withoutReplicas({ status: 'REPLICA_INIT' })).toContain(' 0/3 ');
  expect(withoutReplicas({ status: 'SHUTTING_DOWN' })).toContain(' 0/0 ');
});

test('a crashing service process is shown with its last error and log command', () => {
  const crash = { process: 'reconciler', count: 9, lastAt: '2030-01-01T11:59:30.000Z', lastError: 'TypeError: no answer' } as const;
  const shown = renderServices([aServiceView({ processCrashes: [crash] })], options).join('\n');
  expect(shown).toContain(
    '  chat: its reconciler crashed 9 times in the last 10 minutes (last: 30 secs ago): TypeError: no answer Log: svc serve logs chat --controller',
  );
});

test('verbose adds policies and requested resources', () => {
  expect(
    renderServices(services, { ...options, verbose: true })
      .slice(0, 3)
      .join('\n'),
  ).toMatchSnapshot();
});

test('a pipe gets untruncated values', () => {
  const [long = ''] = renderServices([aServiceView({ name: 'x'.repeat(50), endpoint: `http://${'y'.repeat(300)}` })], {
    ...options,
    width: Infinity,
  }).slice(1);
  expect(long).toContain('x'.repeat(50));
  expect(long).toContain('y'.repeat(300));
});

test('after many crashes only live and the newest ended replicas are shown', () => {
  const ended = Array.from({ length: 30 }, (_, index) =>
    aReplicaView({ id: index + 2, status: 'FAILED', endedAt: '2030-01-01T11:59:30.000Z' }),
  );
  const lines = renderServices([aServiceView({ replicas: [aReplicaView({ id: 1 }), ...ended] })], options);
  expect(
    lines
      .filter((line) => line.startsWith('chat '))
      .slice(1)
      .map((line) => Number(line.split(/ +/)[1])),
  ).toEqual([1, 23, 24, 25, 26, 27, 28, 29, 30, 31]);
  expect(lines.at(-1)).toBe('... 21 more; --verbose shows all');
});

test('in 80 columns names stay whole, and constant columns are dropped first', () => {
  const name = 'embeddings-for-search';
  const replicas = [1, 2].map((id) =>
    aReplicaView({ id, endpoint: 'unix:/home/ann/.svc/local/a1/dial.sock:8080', resources: '1x(cpus=2, mem=24)' }),
  );
  const lines = renderServices([aServiceView({ name, replicas })], { ...options, width: 80 });
  expect(lines.slice(4)).toEqual([
    'SERVICE_NAME           ID  ENDPOINT          LAUNCHED   INFRA  RESOURCES  STATUS',
    'embeddings-for-search  1   :8080 (isolated)  1 min ago  local  1x(cpus=…  READY',
    'embeddings-for-search  2   :8080 (isolated)  1 min ago  local  1x(cpus=…  READY',
  ]);
});

test('an exposed endpoint is reported', () => {
  expect(renderServices([aServiceView({ exposed: true })], options)[2]).toBe('  chat: its endpoint is exposed: other machines reach it');
});

test('remote balancers are shown when one is unhealthy, or with --verbose', () => {
  const well = { name: 'svc-balancer-a', status: 'listening' as const };
  const lost = { name: 'svc-balancer-b', status: 'unreachable' as const };
  const shown = (balancers: readonly (typeof well | typeof lost)[], verbose: boolean): string =>
    renderServices([aServiceView({ balancers: [...balancers] })], { ...options, verbose }).join('\n');
  expect(shown([well, lost], false)).toContain(
    '  chat: 1 of 2 balancers serve its endpoint: svc-balancer-a listening, svc-balancer-b unreachable',
  );
  expect(shown([well], false)).not.toContain('balancers serve');
  expect(shown([well], true)).toContain('  chat: 1 of 1 balancers serve its endpoint: svc-balancer-a listening');
  expect(shown([], false)).toContain('  chat: 0 of 0 balancers serve its endpoint');
});

test.for<readonly [reason: string, short: string]>([
  ['Its machine is gone.', 'Its machine is gone.'],
  ['Its run ended with exit code 3. It wrote no output.', 'Its run ended with exit code 3. It wrote no output.'],
  [
    'Its run ended with exit code 3. Its last output:\n  loading\n  no weights found\n  [svc 2030-01-01T12:00:00Z] run ended\n',
    'Its run ended with exit code 3: no weights found',
  ],
  [
    'Its setup was ended by SIGKILL. Its last output:\n  [svc 2030-01-01T12:00:00Z] setup',
    'Its setup was ended by SIGKILL. Its last output:',
  ],
])('the short form of %j is %j', ([reason, short]) => {
  expect(shortReason(reason)).toBe(short);
});

test('a reason is wrapped between words; --verbose shows it completely', () => {
  const reason = 'Its run ended with exit code 3. Its last output:\n  loading\n  no weights were found in the folder that was named';
  const shown = (verbose: boolean): readonly string[] =>
    renderServices([aServiceView({ replicas: [aReplicaView({ reason })] })], { ...options, width: 60, verbose });
  expect(shown(false).slice(-2)).toEqual([
    '  chat 1: Its run ended with exit code 3: no weights were',
    '    found in the folder that was named',
  ]);
  expect(shown(true).slice(-3)).toEqual([
    '  chat 1: Its run ended with exit code 3. Its last output:',
    '      loading',
    '      no weights were found in the folder that was named',
  ]);
});

test('an empty listing says that there are no services', () => {
  expect(renderServices([], options)).toEqual(['No live services.']);
});

test.for([
  ['READY', 'good'],
  ['FAILED_PROBING', 'bad'],
  ['TERMINATED', 'quiet'],
  ['STARTING', 'busy'],
] as const)('%s is shown as %s', ([state, tone]) => {
  expect(toneOf(state)).toBe(tone);
});

test('a long reason is cut in its middle, because its end has the cause', () => {
  const pull = `The image registry.test/web:1 cannot be fetched: ${'failed to do what another one failed to do: '.repeat(10)}not found`;
  const lines = renderServices([aServiceView({ replicas: [aReplicaView({ reason: pull })] })], { ...options, width: 80 });
  const shown = lines.slice(lines.findIndex((line) => line.includes('chat 1: '))).join('\n');
  expect(shown.split('\n').length).toBeLessThanOrEqual(4);
  expect(shown).toMatch(/^ {2}chat 1: The image registry\.test\/web:1 cannot be fetched: [^]*…[^]*: not found$/);
});

test('equal reasons of several replicas are shown once, except with --verbose', () => {
  const replicas = [1, 2, 3, 5].map((id) => aReplicaView({ id, reason: 'It is broken.' }));
  const other = aReplicaView({ id: 4, reason: 'It is another matter.' });
  const listed = [
    aServiceView({ replicas: [...replicas.slice(0, 3), other, ...replicas.slice(3)] }),
    aServiceView({ name: 'embed', replicas: [aReplicaView({ id: 1, reason: 'It is broken.' })] }),
  ];
  const reasons = (verbose: boolean): readonly string[] =>
    renderServices(listed, { ...options, verbose }).filter((line) => /^ {2}(?:chat|embed) [\d,-]+: /.test(line));
  expect(reasons(false)).toEqual(['  chat 1-3,5: It is broken.', '  chat 4: It is another matter.', '  embed 1: It is broken.']);
  expect(reasons(true)).toHaveLength(6);
});

test("a blocked service shows the provider's refusal and the next attempt", () => {
  const blocker = {
    provider: 'kubernetes',
    region: 'prod',
    zone: null,
    instanceType: '1CPU--2GB',
    cause: 'quota',
    scope: 'namespace',
    covers: '1CPU--2GB and larger in the namespace of prod',
    reason: 'exceeded quota: few, requested: pods=1, used: pods=3, limited: pods=3',
    attempts: 2,
    nextAttemptAt: '2030-01-01T12:00:09.500Z',
  } as const;
  const blocked = (count: number, asTyped = options.asTyped): string =>
    renderServices([aServiceView({ blockers: Array.from({ length: count }, () => blocker) })], { ...options, asTyped }).join('\n');
  const shown = blocked(5);
  expect(shown).toContain(
    '  chat is refused (quota) by kubernetes/prod, next attempt in 10s, for 1CPU--2GB and larger in the namespace of prod: exceeded quota: few, requested: pods=1',
  );
  expect(shown).toContain('  chat: 2 more refusals; see: svc serve status chat --verbose');
  const failed = aServiceView({ blockers: [{ ...blocker, cause: 'provider-error', covers: 'everything in prod', reason: 'No answer.' }] });
  expect(renderServices([failed], options).join('\n')).toContain(
    '  chat gets an error (provider-error) from kubernetes/prod, next attempt in 10s, for everything in prod: No answer.',
  );
  expect(blocked(4, (text) => text.replace('svc ', './svc '))).toContain('  chat: 1 more refusal; see: ./svc serve status chat --verbose');
});
