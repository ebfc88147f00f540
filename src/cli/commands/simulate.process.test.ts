import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { runInProcess, type CliOptions, type CliResult } from '../../../test/support/cli-world.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { aReplicaView, aServiceView } from '../../../test/support/views.ts';

const service = `
service:
  readiness_probe: /
  replica_policy: {min_replicas: 1, max_replicas: 4, target_qps_per_replica: 7}
resources: {ports: 8080}
run: serve
`;
const fixed = 'service: {readiness_probe: /, replicas: 2}\nresources: {ports: 8080}\nrun: serve\n';
const hour = `requests_per_second\n${'14\n'.repeat(3_600)}`;
const zones = JSON.stringify({ name: 'two zones', gap_seconds: 300, zones: ['a', 'b'], capacity: [Array(12).fill(4), Array(12).fill(2)] });

interface Done extends CliResult {
  /** The report, if one was written. */
  readonly report: string | undefined;
}

/** Runs the command in a folder with service files and traces. */
async function simulate(words: string, options: CliOptions = {}): Promise<Done> {
  return withTempHome(async (cwd) => {
    const files = {
      'service.yaml': service,
      'fixed.yaml': fixed,
      'hour.csv': hour,
      'zones.json': zones,
      'wrong.csv': 'seconds,requests\n0,1\n1;2\n',
    };
    for (const [name, content] of Object.entries(files)) writeFileSync(join(cwd, name), content);
    writeFileSync(join(cwd, 'hour.csv.gz'), gzipSync(hour));
    writeFileSync(join(cwd, 'broken.gz'), gzipSync(hour).subarray(0, 60));
    writeFileSync(join(cwd, 'latin.csv'), Buffer.from([0x73, 0xe9, 0x0a]));
    const result = await runInProcess(['simulate', ...words.split(' ')], { width: 110, ...options, cwd });
    return { ...result, report: words.endsWith('--html report.html') ? readFileSync(join(cwd, 'report.html'), 'utf8') : undefined };
  });
}

test('policies over requests are compared in a table, the file first and the bound last', async () => {
  const { code, stdout, stderr, calls } = await simulate('service.yaml --requests hour.csv --compare knative,skyserve');
  expect({ code, stderr, calls }).toEqual({ code: 0, stderr: '', calls: [] });
  expect(stdout).toMatchInlineSnapshot(`
    "hour.csv: 1h, 50400 requests, 14 requests/s on average; read as counts.
    A replica serves 10 requests/s (target_qps_per_replica 7 / 0.7; --capacity sets it) and is ready 183 s after its launch. The file allows 1 to 4 replicas.

    POLICY    COST   AVAILABLE  FAILED  LATE   REPLICA-HOURS  CHANGES/H  MEAN_WAIT
    file      1.000  100.00%    0.00%   0.00%  1.67           0.0        0.00s
    knative   1.000  100.00%    0.00%   0.00%  1.67           0.0        0.00s
    skyserve  1.000  100.00%    0.00%   0.00%  1.67           0.0        0.00s
    bound     1.000  100.00%    0.00%   0.00%  1.67           -          0.00s

    COST: replica-hours relative to the bound, which knows the future. AVAILABLE: share of the time in which a request waits at most 5 s. LATE: requests that wait longer. FAILED: requests beyond a queue of 60 s. The first 10 minutes are not scored.
    "
  `);
});

test('requests and spot capacity together run in one world, each policy with the others of the file', async () => {
  const { code, stdout } = await simulate(
    'service.yaml --requests hour.csv --spot zones.json --compare fixed_peak,round_robin,knative+on_demand',
  );
  expect(code).toBe(0);
  expect(stdout.slice(stdout.indexOf('two zones'))).toMatchInlineSnapshot(`
    "two zones: 1h, 2 zones, capacity each 300 s.
    Spot costs 0.33 of the price on demand: no price is known for machines of the file in these zones. --spot-price sets it.
    Three runs over 56m 57s: at the start, in the middle and at the end of the spot trace. The placer of the file is hedge.

    POLICY             COST   AVAILABLE  FAILED  CUT    LATE   REPLICA-HOURS  ON-DEMAND-HOURS  CHANGES/H  LOST/DAY
    file+hedge         0.333  100.00%    0.00%   0.00%  0.00%  1.56           0.00             6.3        0.0
    fixed_peak+hedge   0.333  100.00%    0.00%   0.00%  0.00%  1.56           0.00             6.3        0.0
    file+round_robin   0.333  100.00%    0.00%   0.00%  0.00%  1.56           0.00             2.1        0.0
    knative+on_demand  0.999  100.00%    0.00%   0.00%  0.00%  1.56           1.56             2.1        0.0
    bound              0.333  100.00%    0.00%   0.00%  0.00%  1.57           0.00             -          -

    COST: money relative to the fewest replicas that make no request late, all on demand. AVAILABLE: share of the time in which a request waits at most 5 s. LATE: requests that wait longer. FAILED: requests beyond a queue of 60 s, and CUT: those that ran on a replica when it was lost. The first 10 minutes are not scored. Means of 3 runs.
    "
  `);
});

test('policies over spot capacity are compared for the smallest number of replicas of the file', async () => {
  const { code, stdout } = await simulate('fixed.yaml --spot zones.json --compare round_robin,on_demand');
  expect(code).toBe(0);
  expect(stdout).toMatchInlineSnapshot(`
    "two zones: 1h, 2 zones, capacity each 300 s.
    The service needs 2 ready replicas. One is ready 183 s after its launch. dynamic_fallback has 1 spare.
    Spot costs 0.33 of the price on demand: no price is known for machines of the file in these zones. --spot-price sets it.

    POLICY       COST   AVAILABLE  FAILED  SPOT-HOURS  ON-DEMAND-HOURS  CHANGES/H  LOST/DAY
    round_robin  0.333  100.00%    0.00%   2.00        0.00             2.0        0.0
    on_demand    1.000  100.00%    0.00%   0.00        2.00             2.0        0.0
    bound        0.333  100.00%    0.00%   2.00        0.00             -          -

    COST: money relative to all replicas on demand. AVAILABLE: share of the time with enough ready replicas. FAILED: requests that exceed their capacity, or run on a replica when it is lost. Means of 3 runs.
    "
  `);
});

test("the prices of the file's machines in the zones of the trace are used, and others named", async () => {
  const machines = 'resources: {ports: 8080, infra: aws, accelerators: A10G:4, instance_type: g5.12xlarge, use_spot: true}';
  const text = fixed.replace('resources: {ports: 8080}', machines);
  const priced = { gap_seconds: 300, zones: ['ap-south-1a_a10g_4', 'us-nowhere-1a'], capacity: [Array(12).fill(4), Array(12).fill(2)] };
  await withTempHome(async (cwd) => {
    writeFileSync(join(cwd, 'gpu.yaml'), text);
    writeFileSync(join(cwd, 'zones.json'), JSON.stringify(priced));
    writeFileSync(join(cwd, 'recorded.json'), JSON.stringify({ ...priced, prices: [Array(12).fill(3.5), null] }));
    const run = async (...words: readonly string[]) =>
      runInProcess(['simulate', 'gpu.yaml', '--compare', 'on_demand,round_robin', ...words], { width: 400, cwd });
    const { stdout } = await run('--spot', 'zones.json');
    expect(stdout).toContain(
      'On demand a replica costs $6.85 per hour (g5.12xlarge), on spot $2.46 (prices of the price tables). Without a price: us-nowhere-1a; there spot costs 0.33 of the price on demand.',
    );
    expect(stdout).toMatch(/^POLICY +COST +USD +AVAILABLE/m);
    expect((await run('--spot', 'recorded.json')).stdout).toContain('on spot $3.50 (prices of the trace)');
    expect((await run('--spot', 'zones.json', '--spot-price', '0.5')).stdout).toContain(
      'Spot costs 0.50 of the price on demand (--spot-price).',
    );
    expect(JSON.parse((await run('--spot', 'zones.json', '--json')).stdout)).toMatchObject({
      hourlyUsd: null,
      spot: [{ hourlyUsd: expect.closeTo(6.85, 1) }],
    });
  });
});

test('without --compare all policies are compared, and the one of the file not twice', async () => {
  const { stdout } = await simulate('service.yaml --requests hour.csv --json');
  const { requests }: { readonly requests: { readonly scores: readonly { readonly policy: string }[] } } = JSON.parse(stdout);
  expect(requests.scores.map(({ policy }) => policy)).toEqual([
    'file',
    'concurrency',
    'forecast',
    'skyserve',
    'skyserve_quick',
    'knative',
    'kubernetes',
    'fixed_peak',
    'bound',
  ]);
});

const requestsOfHour = {
  trace: { name: 'hour.csv.gz', seconds: 3_600, requests: 50_400 },
  capacityQps: 7,
  coldStartSeconds: 60,
  minReplicas: 1,
  maxReplicas: 1,
};

test('--json has the settings and every score over requests; --set changes the policy of the file', async () => {
  const { code, stdout } = await simulate(
    'service.yaml --requests hour.csv.gz --compare fixed_peak --set max_replicas=1 --cold-start 60 --capacity 7 --json',
  );
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({
    service: 'service.yaml',
    hourlyUsd: null,
    requests: {
      ...requestsOfHour,
      scores: [
        expect.objectContaining({ policy: 'file', kind: 'own', late: 1, available: 0, changesPerHour: 0 }),
        expect.objectContaining({ policy: 'fixed_peak', kind: 'baseline', late: 1 }),
        expect.objectContaining({ policy: 'bound', kind: 'bound', cost: 1, late: 0 }),
      ],
    },
    spot: [],
    both: [],
  });
});

test('--json has the settings and every score over spot capacity, and over both together', async () => {
  const trace = { name: 'two zones', zones: ['a', 'b'], gapSeconds: 300, steps: 12 };
  const third = [1 / 3, 1 / 3];
  const spot = await simulate('service.yaml --spot zones.json --compare on_demand --cold-start 60 --json');
  expect(JSON.parse(spot.stdout)).toMatchObject({
    requests: null,
    spot: [
      {
        trace,
        target: 1,
        spotPrices: third,
        spare: 1,
        coldStartSeconds: 60,
        hourlyUsd: null,
        scores: [
          expect.objectContaining({ policy: 'on_demand', cost: 1, available: 1 }),
          expect.objectContaining({ policy: 'bound', kind: 'bound', cost: expect.closeTo(1 / 3) }),
        ],
      },
    ],
    both: [],
  });
  const both = await simulate(
    'service.yaml --requests hour.csv.gz --spot zones.json --compare on_demand --set max_replicas=1 --cold-start 60 --capacity 7 --json',
  );
  expect(JSON.parse(both.stdout)).toMatchObject({
    requests: null,
    spot: [],
    both: [
      {
        requests: requestsOfHour,
        spot: { ...trace, spotPrices: third, spare: 1 },
        seconds: 3_540,
        placer: 'hedge',
        hourlyUsd: null,
        scores: [
          expect.objectContaining({ policy: 'file+hedge', autoscaler: 'file', placer: 'hedge', kind: 'own', late: 1, available: 0 }),
          expect.objectContaining({ policy: 'file+on_demand', kind: 'baseline', late: 1, cut: 0 }),
          expect.objectContaining({ policy: 'bound', kind: 'bound', autoscaler: null, late: 0 }),
        ],
      },
    ],
  });
});

test('a max_replicas that makes requests late is named', async () => {
  const { stdout } = await simulate('service.yaml --requests hour.csv --set max_replicas=1 --compare knative');
  expect(stdout).toContain(
    'The policy of the file has all of its 1 replicas and is late for 100.0 % of the time. --set max_replicas=N tries more.',
  );
  expect((await simulate('service.yaml --requests hour.csv --compare knative')).stdout).not.toContain('--set max_replicas');
});

test('--price shows money beside the relative cost', async () => {
  const { stdout } = await simulate(
    'service.yaml --requests hour.csv --spot zones.json --compare fixed_peak,on_demand --price 0.6 --spot-price 0.5',
  );
  expect(stdout).toMatch(/^POLICY +COST +USD +AVAILABLE/m);
  // 56 min 57 s without the first ten minutes, for two replicas.
  expect(stdout).toMatch(/^file\+on_demand +0\.999 +0\.94 /m);
  expect(stdout).toMatch(/^file\+hedge +0\.499 +0\.47 /m);
  const requests = await simulate('service.yaml --requests hour.csv --compare fixed_peak --price 0.6');
  expect(requests.stdout).toMatch(/^bound +1\.000 +1\.00 /m);
});

test('--html writes a report and says where it is', async () => {
  const { stderr, report } = await simulate('service.yaml --requests hour.csv --compare knative --html report.html');
  expect(stderr).toBe('The report is in report.html\n');
  expect(report).toContain('<h1>Simulation of service.yaml</h1>');
});

test.for([
  ['service.yaml', 'There is nothing to simulate: no trace is given.'],
  ['service.yaml --with fixed.yaml --requests hour.csv', '--with replays the requests of a running service, and --requests names others.'],
  ['service.yaml --requests hour.csv --compare knatve', "There is no policy 'knatve' to compare.\nhint: Did you mean 'knative'?"],
  ['service.yaml --requests hour.csv --cold-start soon', "--cold-start is 'soon', which is not a number from 0 to 86400."],
  ['service.yaml --requests hour.csv --capacity 0', "--capacity is '0', which is not a number from 0.000001 to 1000000."],
  ['service.yaml --spot zones.json --spot-price 2', "--spot-price is '2', which is not a number from 0.001 to 1."],
  ['service.yaml --spot zones.json --compare forecast+hedge', 'A pair of --compare needs requests and spot capacity together.'],
  ['service.yaml --requests hour.csv --spot zones.json --compare hedge+forecast', "There is no policy 'hedge' to compare."],
  ['service.yaml --requests hour.csv --spot zones.json --replicas 3', 'the autoscaler decides the number of replicas, not --replicas.'],
  ['fixed.yaml --requests hour.csv', 'fixed.yaml does not say how many requests a replica serves.'],
  ['service.yaml --requests hour.csv --set autoscaling', "'autoscaling' does not set a field of replica_policy."],
] as const)('svc simulate %s: a usage error says what is wrong', async ([words, message]) => {
  const { code, stdout, stderr } = await simulate(words);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(message);
  expect(stderr).toContain('code: SVC_USAGE');
});

test.for([
  ['--requests wrong.csv', 2, 'wrong.csv:3:1: expected a second and a number of requests\n  1;2', 'SVC_BAD_TRACE'],
  ['--requests nowhere.csv', 3, 'nowhere.csv does not exist.', 'SVC_FILE_NOT_FOUND'],
  ['--requests .', 2, 'cannot be read: it is a folder.', 'SVC_FILE_UNREADABLE'],
  ['--requests broken.gz', 2, 'cannot be read: unexpected end of file.', 'SVC_FILE_UNREADABLE'],
  ['--requests latin.csv', 2, 'latin.csv is not UTF-8 text.', 'SVC_FILE_UNREADABLE'],
  ['--spot hour.csv', 2, 'The spot trace hour.csv is not JSON.', 'SVC_BAD_TRACE'],
  ['--requests hour.csv --set max_replcas=3', 2, 'max_replicas', 'SVC_INVALID_TASK'],
  ['--requests hour.csv --html nowhere/report.html', 2, 'nowhere/report.html cannot be written', 'SVC_FILE_UNREADABLE'],
] as const)('svc simulate %s fails with a message about the file', async ([words, expectedCode, message, errorCode]) => {
  const { code, stderr } = await simulate(`service.yaml ${words}`);
  expect(stderr).toContain(message);
  expect({ code, isCode: stderr.includes(`code: ${errorCode}`) }).toEqual({ code: expectedCode, isCode: true });
});

test('a trace that ends before the first scored second is refused', async () => {
  await withTempHome(async (cwd) => {
    writeFileSync(join(cwd, 'service.yaml'), service);
    writeFileSync(join(cwd, 'short.csv'), '0,5\n300,5\n');
    const { code, stderr } = await runInProcess(['simulate', 'service.yaml', '--requests', 'short.csv'], { cwd });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('The trace short.csv has only 301 s.') });
  });
});

test('the last day of a running service is replayed with the cold start of its replicas and other settings', async () => {
  const clock = new FakeClock();
  const now = clock.now();
  const access = (ageSeconds: number): string =>
    `${JSON.stringify({ at: now - ageSeconds * 1_000, id: 'x', method: 'GET', path: '/', status: 200, outcome: 'ok', total_ms: 3 })}\n`;
  const old = access(100_000);
  const log = [
    old,
    '{"level":30,"time":"2026-01-01T00:00:00Z","msg":"started"}\nstack of a crash\n',
    ...Array.from({ length: 1_800 }, (_, second) => access(1_800 - second)),
  ];
  const at = (seconds: number): string => new Date(now + seconds * 1_000).toISOString();
  const replicas = [40, 90, 70].map((readySeconds, index) =>
    aReplicaView({ id: index + 1, hourlyUsd: 0.5, launchedAt: at(0), readyAt: at(readySeconds) }),
  );
  const routes: CliOptions['routes'] = {
    getService: () => aServiceView({ replicas }),
    serviceLogs: () => log,
    serviceFile: () => ({
      source: `${service}secrets: {TOKEN: null, KEY: ***}\nenvs: {SIZE: null}\n`,
      envs: { SIZE: '7b' },
      secrets: ['TOKEN', 'KEY'],
    }),
  };
  const { code, stdout, calls } = await simulate('chat --with service.yaml --compare skyserve --json', { clock, routes });
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    service: 'chat',
    hourlyUsd: 0.5,
    requests: { trace: { name: 'access log of chat', seconds: 1_800, requests: 1_800 }, coldStartSeconds: 70 },
  });
  expect(calls.at(-1)?.input).toEqual({ params: { name: 'chat' }, query: { target: 'load-balancer', follow: false } });
  const own = await simulate('chat --set max_replicas=9 --compare skyserve --json', { clock, routes });
  expect(JSON.parse(own.stdout)).toMatchObject({ service: 'chat', requests: { minReplicas: 1, maxReplicas: 9, coldStartSeconds: 70 } });
});

test('--with and a service without requests in the last day is refused', async () => {
  const routes: CliOptions['routes'] = { getService: () => aServiceView(), serviceLogs: () => ['{"at":1,"outcome":"ok"}\n'] };
  const { code, stderr } = await simulate('chat --with service.yaml', { routes });
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("Service 'chat' had no requests in the last 24 hours.") });
});

test.for(['chat', 'chat --with service.yaml'])('svc simulate %s without such a service fails as other commands do', async (words) => {
  const { code, stderr } = await simulate(words);
  expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('code: SVC_SERVICE_NOT_FOUND') });
});

test("the figures of other tools and the bounds in the guide are those of the example's traces", async () => {
  await withTempHome(async (cwd) => {
    execFileSync(process.execPath, [resolve('examples/simulate/make-traces.mjs')], { cwd });
    const file = resolve('examples/autoscaling/service.yaml');
    const run = async (...words: readonly string[]) => runInProcess(['simulate', file, ...words], { cwd });
    const outputs = [
      await run('--set', 'max_replicas=20', '--requests', 'day.csv', '--compare', 'skyserve,skyserve_quick,knative,kubernetes,fixed_peak'),
      await run('--set', 'max_replicas=20', '--requests', 'day.csv', '--spot', 'zones.json', '--compare', 'on_demand'),
      await run('--spot', 'zones.json', '--replicas', '4', '--compare', 'dynamic_fallback,even_spread,round_robin,on_demand'),
    ];
    const guide = readFileSync('docs/guides/choosing-a-policy.md', 'utf8')
      .split('\n')
      .map((line) => line.replaceAll(/ +/g, ' '));
    const rows = outputs
      .flatMap(({ stdout }) => stdout.split('\n'))
      .filter((line) => /^[a-z_+]+ +\d/.test(line) && !/^file( |\+hedge)/.test(line));
    expect(rows.length).toBe(13);
    for (const row of rows) expect(guide).toContain(row.replaceAll(/ +/g, ' '));
  });
});
