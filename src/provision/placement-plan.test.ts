import { expect, test } from 'vitest';
import { aMachineSpec, anOffer, someResources } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { aDisabledProvider, statesOf } from '../../test/support/providers.ts';
import { aStubProvider } from '../../test/support/stub-provider.ts';
import { rememberRefusal } from '../domain/placement/refusals.ts';
import { ProviderRefusal } from '../providers/provider-refusal.ts';
import type { Offer, OfferList } from '../providers/provider.ts';
import { hasChoice, planPlacement, type PlanRequest } from './placement-plan.ts';

const clock = new FakeClock();
const east = anOffer({ provider: 'aws', region: 'east', zone: 'east-a', instanceType: 'g6', accelerator: { name: 'L4', count: 1 } });
const west = { ...east, region: 'west', zone: undefined };
const dear = { ...east, region: 'north', hourlyUsd: 1.5 };
const tiny = { ...east, instanceType: 'tiny', hourlyUsd: 0.1, accelerator: undefined };

const aws = (list: Partial<OfferList> = {}) =>
  aStubProvider({
    name: 'aws',
    offers: (_, { explain }) =>
      Promise.resolve({ offers: [east, west, dear], whyNone: undefined, ...list, ...(explain !== true && { rejected: [] }) }),
  });

const request = (change: Partial<PlanRequest> = {}): PlanRequest => ({
  alternatives: { order: 'any', choices: [someResources()] },
  replicas: 3,
  providers: statesOf(aws({ rejected: [{ offer: tiny, why: 'has no GPU' }] }), aStubProvider({ name: 'local' })),
  clock,
  explain: false,
  ...change,
});

const lines = async (change: Partial<PlanRequest> = {}) =>
  (await planPlacement(request(change))).offers.map(
    ({ region, verdict, replicas, why }) => `${region} ${verdict} ${replicas.join()}: ${why}`,
  );

test("the plan has each replica's machine, and the other offers with their reasons", async () => {
  expect(await lines()).toEqual([
    'east chosen 1,3: equally good; replicas are spread',
    'west chosen 2: equally good; replicas are spread',
    'north possible : 0.50 $/h dearer',
  ]);
  expect((await lines({ explain: true })).slice(3)).toEqual(['east excluded : has no GPU']);
});

const withRoom = (room: number) =>
  aStubProvider({ offers: async () => ({ offers: [{ ...east, region: 'eyes', zone: undefined, room }], whyNone: undefined }) });

test('replicas without room are reported and cost nothing', async () => {
  const some = await planPlacement(request({ replicas: 9, providers: statesOf(withRoom(5)) }));
  expect(some.offers.map(({ replicas, why }) => [replicas, why])).toEqual([[[1, 2, 3, 4, 5], 'the only location that offers it']]);
  expect([some.hourlyUsd, some.notes]).toEqual([
    5,
    ['4 of 9 replicas have no room now (aws/eyes has room for 5), and would be asked for again until there is some.'],
  ]);
  expect((await planPlacement(request({ replicas: 9, providers: statesOf(withRoom(9)) }))).notes).toEqual([]);
});

test('machines of several nodes need room for all of them', async () => {
  const provider = aStubProvider({
    ...aws(),
    name: 'aws',
    capabilities: { ...aws().capabilities, multiNode: true },
    offers: async () => ({ offers: [{ ...east, room: 5 }], whyNone: undefined }),
  });
  const plan = await planPlacement(request({ replicas: 3, nodes: 2, providers: statesOf(provider) }));
  expect(plan.offers[0]?.replicas).toEqual([1, 2]);
  const none = await planPlacement(request({ replicas: 1, nodes: 6, providers: statesOf(provider) }));
  expect([hasChoice(none), none.offers[0]?.why]).toEqual([false, 'no room there now']);
  expect(none.notes).toEqual([
    'The replica has no room now (aws/east/east-a has room for 0), and would be asked for again until there is some.',
  ]);
});

test("a plan passes the task's provider configuration to the providers", async () => {
  const providerConfig = { kubernetes: { podConfig: { spec: { nodeSelector: { disk: 'ssd' } } } } };
  const received: unknown[] = [];
  const provider = aStubProvider({
    offers: async (_, options) => {
      received.push(options.providerConfig);
      return { offers: [east], whyNone: undefined };
    },
  });
  await planPlacement(request({ providers: statesOf(provider), providerConfig }));
  expect(received).toEqual([providerConfig]);
});

test('the plan has the total cost per hour and per month of 730 hours', async () => {
  const plan = await planPlacement(request({ replicas: 4 }));
  expect([plan.hourlyUsd, plan.monthlyUsd, plan.offers[0]?.monthlyUsd]).toEqual([4, 2_920, 730]);
  expect(plan.offers[0]).toMatchObject({ accelerators: 'L4:1', zone: 'east-a', alternative: 1 });
});

test('prices include all nodes of a replica', async () => {
  const provider = aStubProvider({
    ...aws(),
    name: 'aws',
    capabilities: { ...aws().capabilities, multiNode: true },
  });
  const plan = await planPlacement(request({ replicas: 2, nodes: 3, providers: statesOf(provider) }));
  expect([plan.hourlyUsd, plan.offers[0]?.hourlyUsd, plan.offers[0]?.nodes]).toEqual([6, 3, 3]);
  expect(plan.offers.at(-1)?.why).toBe('1.50 $/h dearer');
});

test('the plan respects known refusals and existing replicas', async () => {
  const refusals = rememberRefusal([], east, { kind: 'capacity', scope: 'zone', reason: 'none left.' }, clock.now(), 0);
  const found = await lines({ replicas: 1, memory: { refusals, starts: [] } });
  expect(found[0]).toMatch(/^east refused : refused \(capacity\) until 2030-01-01T12:00:30.000Z for .*: none left\.$/);
  expect(found[1]).toBe('west chosen 1: the best that may be asked');
  expect((await lines({ replicas: 1, occupied: [{ provider: 'aws', region: 'east' }] }))[0]).toMatch(/^west chosen/);
});

test('every provider shows whether the plan uses it, and why not', async () => {
  const providers = [...statesOf(aws(), aStubProvider({ name: 'local' })), aDisabledProvider('gcp', 'no credentials.')];
  expect((await planPlacement(request({ providers }))).places).toEqual([
    { name: 'aws', takesPart: true, why: null },
    { name: 'local', takesPart: false, why: 'other providers come first.' },
    { name: 'gcp', takesPart: false, why: 'not enabled: no credentials.' },
  ]);
  const named = request({ providers, alternatives: { order: 'any', choices: [someResources({ cloud: 'aws' })] } });
  expect((await planPlacement(named)).places[1]?.why).toBe('the file does not name it.');
});

test('without any offer the plan has only reasons; old prices get a notice', async () => {
  const empty = await planPlacement(request({ providers: statesOf(aws({ offers: [], whyNone: 'It has no H100.' })) }));
  expect([hasChoice(empty), empty.notes]).toEqual([false, ['aws: It has no H100.']]);
  const old = await planPlacement(request({ providers: statesOf(aws({ notice: 'Prices of aws are of 2020-01-01.' })) }));
  expect([hasChoice(old), old.notes]).toEqual([true, ['Prices of aws are of 2020-01-01.']]);
});

test.for([
  [{ useSpot: true }, 'local: it has no spot machines (use_spot).'],
  [{ imageId: 'docker:x' }, 'local: it takes no images of its users (image_id).'],
  [{ diskTier: 'high' }, 'local: its disks cannot be chosen (disk_tier: high).'],
  [{ networkTier: 'best' }, 'local: its networks cannot be chosen (network_tier: best).'],
] as const)('an ability that a provider lacks is named: %o', async ([requested, reason]) => {
  const alternatives = { order: 'any', choices: [someResources(requested)] } as const;
  expect((await planPlacement(request({ alternatives, providers: statesOf(aStubProvider({ name: 'local' })) }))).notes).toEqual([reason]);
});

const spec = () => aMachineSpec();
/** A provider with preflight checks that answers by region. */
const shows = (answer: (region: string) => Error | undefined, asked: string[] = []) => ({
  ...aws(),
  preflight: async ({ region }: Offer) => {
    asked.push(region);
    const error = answer(region);
    if (error !== undefined) throw error;
  },
});

test('the provider checks each chosen kind once, and refused ones are not chosen', async () => {
  const asked: string[] = [];
  const no = new ProviderRefusal('setup', 'region', 'The cluster east refuses it: no PriorityClass with name nope was found', {
    hint: 'Make it.',
  });
  const provider = shows((region) => (region === 'east' ? no : undefined), asked);
  const plan = await planPlacement(request({ spec, providers: statesOf(provider) }));
  expect(plan.offers.map(({ region, verdict, replicas }) => `${region} ${verdict} ${replicas.join()}`)).toEqual([
    'east refused ',
    'west chosen 1,2,3',
    'north possible ',
  ]);
  expect(plan.notes).toEqual(['aws/east/east-a: The cluster east refuses it: no PriorityClass with name nope was found. Make it.']);
  expect(asked).toEqual(['east', 'west']);
});

test('when every provider refuses the preflight, nothing is chosen', async () => {
  const plan = await planPlacement(
    request({ spec, providers: statesOf(shows(() => new ProviderRefusal('permission', 'provider', 'No.'))) }),
  );
  expect(hasChoice(plan)).toBe(false);
  expect(plan.notes).toHaveLength(2);
});

test('a provider without a preflight, or without an answer, keeps its choices', async () => {
  const broken = await planPlacement(request({ replicas: 1, spec, providers: statesOf(shows(() => new Error('connection refused'))) }));
  expect(broken.offers[0]).toMatchObject({ region: 'east', verdict: 'chosen' });
  expect(broken.notes).toEqual(['aws/east/east-a: it is not known whether it takes this: connection refused.']);
  const time = new FakeClock();
  const hanging = { ...aws(), preflight: () => new Promise<void>(() => undefined) };
  const planning = planPlacement(request({ replicas: 1, spec, providers: statesOf(hanging), clock: time }));
  await time.advance(8_000);
  expect((await planning).offers[0]).toMatchObject({ region: 'east', verdict: 'chosen' });
});

test('without a machine specification no preflight runs', async () => {
  const asked: string[] = [];
  await planPlacement(request({ providers: statesOf(shows(() => undefined, asked)) }));
  expect(asked).toEqual([]);
});
