import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { anOffer } from '../../../test/support/builders.ts';
import { runInProcess, type CliOptions } from '../../../test/support/cli-world.ts';
import { aDisabledPlace, placesOf } from '../../../test/support/places.ts';
import { anInstanceType, aPriceTable } from '../../../test/support/price-tables.ts';
import { aStubPlace } from '../../../test/support/stub-place.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { anEventView } from '../../../test/support/views.ts';
import { formatTable } from '../../catalog/table-format.ts';
import { planPlacement } from '../../provision/placement-plan.ts';
import type { Places } from '../../provision/places.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { someResources } from '../../../test/support/builders.ts';

const offers = ['us-east-1', 'us-east-2', 'eu-west-1', 'eu-west-2', 'eu-west-3', 'eu-north-1', 'ap-east-1', 'sa-east-1'].map(
  (region, index) =>
    anOffer({
      provider: 'aws',
      region,
      zone: `${region}a`,
      instanceType: 'g6.xlarge',
      hourlyUsd: 0.8 + Math.max(0, index - 1) / 10,
      accelerator: { name: 'L4', count: 1 },
    }),
);
const tiny = anOffer({ provider: 'aws', region: 'us-east-1', instanceType: 't3.small', cpus: 2, hourlyUsd: 0.02 });
const aws = aStubPlace({
  name: 'aws',
  offers: async (_, { explain }) => ({
    offers,
    whyNone: undefined,
    ...(explain === true && { rejected: [{ offer: tiny, why: 'has no GPU' }] }),
  }),
});
const places: Places = {
  ...placesOf(aws),
  states: async () => [...(await placesOf(aws).states()), aDisabledPlace('gcp', 'no credentials were found.')],
};

const file = (rest = '') => `
resources: {accelerators: L4, ports: 8080}
service: {readiness_probe: /, replicas: 3}
run: serve
${rest}`;

/** Runs in a folder that holds the file. */
async function plan(args: readonly string[], options: CliOptions = {}, content = file()) {
  return withTempHome(async (cwd) => {
    writeFileSync(join(cwd, 'service.yaml'), content);
    return runInProcess(['serve', 'plan', 'service.yaml', ...args], { places, width: 110, ...options, cwd });
  });
}

test('plan shows the chosen places, the next-best ones and what it costs, and starts nothing', async () => {
  const { code, stdout, stderr, calls } = await plan([]);
  expect({ code, stderr, calls }).toEqual({ code: 0, stderr: '', calls: [] });
  expect(stdout).toMatchInlineSnapshot(`
    "REPLICA  PLACE            MACHINE    VCPUS  MEM(GB)  GPUS  SPOT  $/H   $/MONTH  WHY
    1,3      aws/us-east-1a   g6.xlarge  4      16       L4:1  -     0.80  584.00   equally good; replicas are spread
    2        aws/us-east-2a   g6.xlarge  4      16       L4:1  -     0.80  584.00   equally good; replicas are spread
    -        aws/eu-west-1a   g6.xlarge  4      16       L4:1  -     0.90  657.00   0.10 $/h dearer
    -        aws/eu-west-2a   g6.xlarge  4      16       L4:1  -     1.00  730.00   0.20 $/h dearer
    -        aws/eu-west-3a   g6.xlarge  4      16       L4:1  -     1.10  803.00   0.30 $/h dearer
    -        aws/eu-north-1a  g6.xlarge  4      16       L4:1  -     1.20  876.00   0.40 $/h dearer
    -        aws/ap-east-1a   g6.xlarge  4      16       L4:1  -     1.30  949.00   0.50 $/h dearer
    (1 more; --all shows them)
    3 replicas: 2.40 $/h, 1752.00 $/month (730 hours), without traffic.
    "
  `);
});

test('replicas without room are told of, and neither counted nor paid for', async () => {
  const small = aStubPlace({ name: 'aws', offers: async () => ({ offers: [{ ...tiny, room: 2 }], whyNone: undefined }) });
  const { code, stdout } = await plan([], { places: placesOf(small) });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^1-2 /m);
  expect(stdout).toContain('2 replicas: 0.04 $/h');
  expect(stdout).toContain('Note: 1 of 3 replicas has no room now (aws/us-east-1 has room for 2)');
});

test('with --all everything is listed with the reason for or against it, and places that take no part', async () => {
  const { stdout } = await plan(['--all']);
  expect(stdout).toMatch(/^- +aws\/us-east-1 +t3.small .* has no GPU$/m);
  expect(stdout).toContain('aws/sa-east-1a');
  expect(stdout).toContain('gcp takes no part: not enabled: no credentials were found.');
});

test('as JSON it is the whole plan', async () => {
  const { stdout } = await plan(['--json']);
  expect(JSON.parse(stdout)).toMatchObject({
    replicas: 3,
    hourlyUsd: expect.closeTo(2.4),
    offers: { length: 8 },
    places: [{ name: 'aws' }, { name: 'gcp' }],
  });
});

test('without a place it says of each why, and with --all what was looked at', async () => {
  const none = placesOf(
    aStubPlace({
      name: 'aws',
      offers: async () => ({ offers: [], whyNone: 'AWS has no L4 there.', rejected: [{ offer: tiny, why: 'has no GPU' }] }),
    }),
  );
  const short = await plan([], { places: none });
  expect([short.code, short.stdout]).toEqual([6, '']);
  expect(short.stderr).toContain('aws: AWS has no L4 there.');
  const long = await plan(['--all'], { places: none });
  expect([long.code, long.stdout.includes('has no GPU')]).toEqual([6, true]);
});

test('a context that is none is what the error is about', async () => {
  const whyNone = "There is no Kubernetes context 'nope' (there are: eyes).";
  const k8s = aStubPlace({ name: 'kubernetes', offers: async () => ({ offers: [], whyNone, isMisnamed: true }) });
  const { code, stderr } = await plan([], { places: placesOf(k8s) }, file().replace('L4,', 'L4, infra: k8s/nope,'));
  expect(code).toBe(6);
  expect(stderr).toContain(`error: The task names a place that there is not.\n  kubernetes: ${whyNone}\nhint: Correct infra in the file`);
});

test('a service that begins without replicas is planned for its first one', async () => {
  const content = file().replace('replicas: 3', 'replica_policy: {min_replicas: 0, max_replicas: 2, target_qps_per_replica: 1}');
  const { stdout } = await plan([], {}, content);
  expect(stdout).toContain('1 replica: 0.80 $/h');
  expect(stdout).toContain('With min_replicas: 0 it costs nothing until a request comes');
});

test('explain tells the search of each replica, and what could be had now', async () => {
  const reply = {
    service: 'chat',
    replicas: [
      {
        id: 2,
        status: 'READY' as const,
        reason: null,
        reachedBy: 'pod address 10.0.0.7:8080',
        steps: [
          anEventView({ id: 1, replicaId: 2, cause: 'place-refused', message: 'aws/us-east-1/us-east-1a refused (capacity): none left.' }),
          anEventView({ id: 2, replicaId: 2, cause: 'place-gave', message: 'aws/us-east-2/us-east-2a gave machine i-1.' }),
        ],
      },
    ],
    plan: await planPlacement({
      alternatives: { order: 'any', choices: [someResources()] },
      replicas: 1,
      places: await places.states(),
      clock: new FakeClock(),
      explain: false,
    }),
  };
  const routes = { explainService: () => reply };
  const { code, stdout, calls } = await runInProcess(['serve', 'explain', 'chat', '2'], { routes, width: 120 });
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^Replica 2 \(READY\)\n {2}Requests reach it by: pod address 10\.0\.0\.7:8080\n.*none left\.\n.*gave machine i-1\.\n\nWhat could be had for one more replica now\nREPLICA/m,
  );
  expect(calls).toEqual([
    { name: 'explainService', input: expect.objectContaining({ params: { name: 'chat' }, query: { all: false, id: 2 } }) },
  ]);
  const missing = await runInProcess(['serve', 'explain', 'chat', '7'], { routes: { explainService: () => ({ ...reply, replicas: [] }) } });
  expect([missing.code, missing.stderr.includes("Service 'chat' has no replica 7.")]).toEqual([3, true]);
  expect((await runInProcess(['serve', 'explain', 'chat'])).code).toBe(3);
});

test('an accelerator that nobody knows is told as such, unless a table of prices has it', async () => {
  const none = placesOf(aStubPlace({ name: 'aws', offers: async () => ({ offers: [], whyNone: 'It has none.' }) }));
  const content = file().replace('L4', 'H1000');
  const unknown = await plan([], { places: none }, content);
  expect(unknown.code).toBe(6);
  expect(unknown.stderr).toContain(
    "error: No place says that it has an accelerator 'H1000', and svc knows none of that name. Did you mean H100?\n  aws: It has none.\n",
  );
  await withTempHome(async (home) => {
    mkdirSync(join(home, 'catalog'));
    const accelerator = { name: 'H1000', count: 8, memoryGb: 100 };
    const table = aPriceTable({ cloud: 'gcp', types: [anInstanceType({ accelerator })] });
    writeFileSync(join(home, 'catalog', 'gcp.csv'), formatTable(table));
    expect((await plan([], { places: none, home }, content)).stderr).toContain('error: No enabled place has what the task asks for.\n');
  });
});
