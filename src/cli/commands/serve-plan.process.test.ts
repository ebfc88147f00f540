import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { anOffer } from '../../../test/support/builders.ts';
import { runInProcess, type CliOptions } from '../../../test/support/cli-world.ts';
import { aDisabledProvider, providersOf } from '../../../test/support/providers.ts';
import { anInstanceType, aPriceTable } from '../../../test/support/price-tables.ts';
import { aStubProvider } from '../../../test/support/stub-provider.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { anEventView } from '../../../test/support/views.ts';
import { formatTable } from '../../catalog/table-format.ts';
import { planPlacement } from '../../provision/placement-plan.ts';
import type { Providers } from '../../provision/providers.ts';
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
const aws = aStubProvider({
  name: 'aws',
  offers: async (_, { explain }) => ({
    offers,
    whyNone: undefined,
    ...(explain === true && { rejected: [{ offer: tiny, why: 'has no GPU' }] }),
  }),
});
const providers: Providers = {
  ...providersOf(aws),
  states: async () => [...(await providersOf(aws).states()), aDisabledProvider('gcp', 'no credentials were found.')],
};

const file = (rest = '') => `
resources: {accelerators: L4, ports: 8080}
service: {readiness_probe: /, replicas: 3}
run: serve
${rest}`;

/** Runs the command in a folder with the file. */
async function plan(args: readonly string[], options: CliOptions = {}, content = file()) {
  return withTempHome(async (cwd) => {
    writeFileSync(join(cwd, 'service.yaml'), content);
    return runInProcess(['serve', 'plan', 'service.yaml', ...args], { providers, width: 110, ...options, cwd });
  });
}

test('plan shows chosen locations, alternatives and cost, and starts nothing', async () => {
  const { code, stdout, stderr, calls } = await plan([]);
  expect({ code, stderr, calls }).toEqual({ code: 0, stderr: '', calls: [] });
  expect(stdout).toMatchInlineSnapshot(`
    "REPLICA  LOCATION         MACHINE    VCPUS  MEM(GB)  GPUS  SPOT  $/H   $/MONTH  WHY
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

test('replicas without capacity are noted, and not part of the cost', async () => {
  const small = aStubProvider({ name: 'aws', offers: async () => ({ offers: [{ ...tiny, room: 2 }], whyNone: undefined }) });
  const { code, stdout } = await plan([], { providers: providersOf(small) });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^1-2 /m);
  expect(stdout).toContain('2 replicas: 0.04 $/h');
  expect(stdout).toContain('Note: 1 of 3 replicas has no room now (aws/us-east-1 has room for 2)');
});

test('--all lists every offer with its reason, and excluded providers', async () => {
  const { stdout } = await plan(['--all']);
  expect(stdout).toMatch(/^- +aws\/us-east-1 +t3.small .* has no GPU$/m);
  expect(stdout).toContain('aws/sa-east-1a');
  expect(stdout).toContain('gcp takes no part: not enabled: no credentials were found.');
});

test('--json prints the whole plan', async () => {
  const { stdout } = await plan(['--json']);
  expect(JSON.parse(stdout)).toMatchObject({
    replicas: 3,
    hourlyUsd: expect.closeTo(2.4),
    offers: { length: 8 },
    places: [{ name: 'aws' }, { name: 'gcp' }],
  });
});

test("without an offer, each provider's reason is shown; --all adds rejected offers", async () => {
  const none = providersOf(
    aStubProvider({
      name: 'aws',
      offers: async () => ({ offers: [], whyNone: 'AWS has no L4 there.', rejected: [{ offer: tiny, why: 'has no GPU' }] }),
    }),
  );
  const short = await plan([], { providers: none });
  expect([short.code, short.stdout]).toEqual([6, '']);
  expect(short.stderr).toContain('aws: AWS has no L4 there.');
  const long = await plan(['--all'], { providers: none });
  expect([long.code, long.stdout.includes('has no GPU')]).toEqual([6, true]);
});

test("an unknown context is the error's cause", async () => {
  const whyNone = "There is no Kubernetes context 'nope' (there are: eyes).";
  const k8s = aStubProvider({ name: 'kubernetes', offers: async () => ({ offers: [], whyNone, isMisnamed: true }) });
  const { code, stderr } = await plan([], { providers: providersOf(k8s) }, file().replace('L4,', 'L4, infra: k8s/nope,'));
  expect(code).toBe(6);
  expect(stderr).toContain(`error: The task names an unknown location.\n  kubernetes: ${whyNone}\nhint: Correct infra in the file`);
});

test('a service with min_replicas 0 is planned for its first replica', async () => {
  const content = file().replace('replicas: 3', 'replica_policy: {min_replicas: 0, max_replicas: 2, target_qps_per_replica: 1}');
  const { stdout } = await plan([], {}, content);
  expect(stdout).toContain('1 replica: 0.80 $/h');
  expect(stdout).toContain('With min_replicas: 0 it costs nothing until a request comes');
});

test("explain shows each replica's search and the current offers", async () => {
  const reply = {
    service: 'chat',
    replicas: [
      {
        id: 2,
        status: 'READY' as const,
        reason: null,
        reachedBy: 'pod address 10.0.0.7:8080',
        steps: [
          anEventView({ id: 1, replicaId: 2, cause: 'launch-refused', message: 'aws/us-east-1/us-east-1a refused (capacity): none left.' }),
          anEventView({ id: 2, replicaId: 2, cause: 'machine-created', message: 'aws/us-east-2/us-east-2a created machine i-1.' }),
        ],
      },
    ],
    plan: await planPlacement({
      alternatives: { order: 'any', choices: [someResources()] },
      replicas: 1,
      providers: await providers.states(),
      clock: new FakeClock(),
      explain: false,
    }),
  };
  const routes = { explainService: () => reply };
  const { code, stdout, calls } = await runInProcess(['serve', 'explain', 'chat', '2'], { routes, width: 120 });
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^Replica 2 \(READY\)\n {2}Requests reach it by: pod address 10\.0\.0\.7:8080\n.*none left\.\n.*created machine i-1\.\n\nWhat could be had for one more replica now\nREPLICA/m,
  );
  expect(calls).toEqual([
    { name: 'explainService', input: expect.objectContaining({ params: { name: 'chat' }, query: { all: false, id: 2 } }) },
  ]);
  const missing = await runInProcess(['serve', 'explain', 'chat', '7'], { routes: { explainService: () => ({ ...reply, replicas: [] }) } });
  expect([missing.code, missing.stderr.includes("Service 'chat' has no replica 7.")]).toEqual([3, true]);
  expect((await runInProcess(['serve', 'explain', 'chat'])).code).toBe(3);
});

test('an accelerator in no price table is reported as unknown', async () => {
  const none = providersOf(aStubProvider({ name: 'aws', offers: async () => ({ offers: [], whyNone: 'It has none.' }) }));
  const content = file().replace('L4', 'H1000');
  const unknown = await plan([], { providers: none }, content);
  expect(unknown.code).toBe(6);
  expect(unknown.stderr).toContain(
    "error: No provider offers an accelerator 'H1000', and svc knows none of that name. Did you mean H100?\n  aws: It has none.\n",
  );
  await withTempHome(async (home) => {
    mkdirSync(join(home, 'catalog'));
    const accelerator = { name: 'H1000', count: 8, memoryGb: 100 };
    const table = aPriceTable({ cloud: 'gcp', types: [anInstanceType({ accelerator })] });
    writeFileSync(join(home, 'catalog', 'gcp.csv'), formatTable(table));
    expect((await plan([], { providers: none, home }, content)).stderr).toContain(
      'error: No enabled provider offers what the task requests.\n',
    );
  });
});
