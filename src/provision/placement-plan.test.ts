import { expect, test } from 'vitest';
import { aMachineSpec, anOffer, someResources } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { aDisabledPlace, statesOf } from '../../test/support/places.ts';
import { aStubPlace } from '../../test/support/stub-place.ts';
import { rememberRefusal } from '../domain/placement/refusals.ts';
import { PlaceRefusal } from '../providers/place-refusal.ts';
import type { Offer, OfferList } from '../providers/provider.ts';
import { hasChoice, planPlacement, type PlanRequest } from './placement-plan.ts';

const clock = new FakeClock();
const east = anOffer({ provider: 'aws', region: 'east', zone: 'east-a', instanceType: 'g6', accelerator: { name: 'L4', count: 1 } });
const west = { ...east, region: 'west', zone: undefined };
const dear = { ...east, region: 'north', hourlyUsd: 1.5 };
const tiny = { ...east, instanceType: 'tiny', hourlyUsd: 0.1, accelerator: undefined };

const aws = (list: Partial<OfferList> = {}) =>
  aStubPlace({
    name: 'aws',
    offers: (_, { explain }) =>
      Promise.resolve({ offers: [east, west, dear], whyNone: undefined, ...list, ...(explain !== true && { rejected: [] }) }),
  });

const request = (change: Partial<PlanRequest> = {}): PlanRequest => ({
  alternatives: { order: 'any', choices: [someResources()] },
  replicas: 3,
  places: statesOf(aws({ rejected: [{ offer: tiny, why: 'has no GPU' }] }), aStubPlace({ name: 'local' })),
  clock,
  explain: false,
  ...change,
});

const lines = async (change: Partial<PlanRequest> = {}) =>
  (await planPlacement(request(change))).offers.map(
    ({ region, verdict, replicas, why }) => `${region} ${verdict} ${replicas.join()}: ${why}`,
  );

test('the chosen place of each replica, what else there is and why it is not chosen', async () => {
  expect(await lines()).toEqual([
    'east chosen 1,3: equally good; replicas are spread',
    'west chosen 2: equally good; replicas are spread',
    'north possible : 0.50 $/h dearer',
  ]);
  expect((await lines({ explain: true })).slice(3)).toEqual(['east excluded : has no GPU']);
});

const withRoom = (room: number) =>
  aStubPlace({ offers: async () => ({ offers: [{ ...east, region: 'eyes', zone: undefined, room }], whyNone: undefined }) });

test('what has no room is said of the replicas that lack it, and costs nothing', async () => {
  const some = await planPlacement(request({ replicas: 9, places: statesOf(withRoom(5)) }));
  expect(some.offers.map(({ replicas, why }) => [replicas, why])).toEqual([[[1, 2, 3, 4, 5], 'the only place that has it']]);
  expect([some.hourlyUsd, some.notes]).toEqual([
    5,
    ['4 of 9 replicas have no room now (aws/eyes has room for 5), and would be asked for again until there is some.'],
  ]);
  expect((await planPlacement(request({ replicas: 9, places: statesOf(withRoom(9)) }))).notes).toEqual([]);
});

test('machines of several nodes need room for all of them', async () => {
  const place = aStubPlace({
    ...aws(),
    name: 'aws',
    capabilities: { ...aws().capabilities, multiNode: true },
    offers: async () => ({ offers: [{ ...east, room: 5 }], whyNone: undefined }),
  });
  const plan = await planPlacement(request({ replicas: 3, nodes: 2, places: statesOf(place) }));
  expect(plan.offers[0]?.replicas).toEqual([1, 2]);
  const none = await planPlacement(request({ replicas: 1, nodes: 6, places: statesOf(place) }));
  expect([hasChoice(none), none.offers[0]?.why]).toEqual([false, 'no room there now']);
  expect(none.notes).toEqual([
    'The replica has no room now (aws/east/east-a has room for 0), and would be asked for again until there is some.',
  ]);
});

test('places hear what the task says for them', async () => {
  const placeConfig = { kubernetes: { podConfig: { spec: { nodeSelector: { disk: 'ssd' } } } } };
  const heard: unknown[] = [];
  const place = aStubPlace({
    offers: async (_, options) => {
      heard.push(options.placeConfig);
      return { offers: [east], whyNone: undefined };
    },
  });
  await planPlacement(request({ places: statesOf(place), placeConfig }));
  expect(heard).toEqual([placeConfig]);
});

test('what the replicas cost together, by the hour and by the month of 730 hours', async () => {
  const plan = await planPlacement(request({ replicas: 4 }));
  expect([plan.hourlyUsd, plan.monthlyUsd, plan.offers[0]?.monthlyUsd]).toEqual([4, 2_920, 730]);
  expect(plan.offers[0]).toMatchObject({ accelerators: 'L4:1', zone: 'east-a', alternative: 1 });
});

test('prices are of all nodes of a replica', async () => {
  const place = aStubPlace({
    ...aws(),
    name: 'aws',
    capabilities: { ...aws().capabilities, multiNode: true },
  });
  const plan = await planPlacement(request({ replicas: 2, nodes: 3, places: statesOf(place) }));
  expect([plan.hourlyUsd, plan.offers[0]?.hourlyUsd, plan.offers[0]?.nodes]).toEqual([6, 3, 3]);
  expect(plan.offers.at(-1)?.why).toBe('1.50 $/h dearer');
});

test('refusals that are known, and replicas that are there, count', async () => {
  const refusals = rememberRefusal([], east, { kind: 'capacity', scope: 'zone', reason: 'none left.' }, clock.now(), 0);
  const found = await lines({ replicas: 1, memory: { refusals, starts: [] } });
  expect(found[0]).toMatch(/^east refused : refused until 2030-01-01T12:00:30.000Z: none left\.$/);
  expect(found[1]).toBe('west chosen 1: the best that may be asked');
  expect((await lines({ replicas: 1, occupied: [{ provider: 'aws', region: 'east' }] }))[0]).toMatch(/^west chosen/);
});

test('every place says whether it takes part, and why not', async () => {
  const places = [...statesOf(aws(), aStubPlace({ name: 'local' })), aDisabledPlace('gcp', 'no credentials.')];
  expect((await planPlacement(request({ places }))).places).toEqual([
    { name: 'aws', takesPart: true, why: null },
    { name: 'local', takesPart: false, why: 'other places come first.' },
    { name: 'gcp', takesPart: false, why: 'not enabled: no credentials.' },
  ]);
  const named = request({ places, alternatives: { order: 'any', choices: [someResources({ cloud: 'aws' })] } });
  expect((await planPlacement(named)).places[1]?.why).toBe('the file does not name it.');
});

test('without any offer there is no choice but the reasons; old prices are said so', async () => {
  const empty = await planPlacement(request({ places: statesOf(aws({ offers: [], whyNone: 'It has no H100.' })) }));
  expect([hasChoice(empty), empty.notes]).toEqual([false, ['aws: It has no H100.']]);
  const old = await planPlacement(request({ places: statesOf(aws({ notice: 'Prices of aws are of 2020-01-01.' })) }));
  expect([hasChoice(old), old.notes]).toEqual([true, ['Prices of aws are of 2020-01-01.']]);
});

test.for([
  [{ useSpot: true }, 'local: it has no spot machines (use_spot).'],
  [{ imageId: 'docker:x' }, 'local: it takes no images of its users (image_id).'],
  [{ diskTier: 'high' }, 'local: its disks cannot be chosen (disk_tier: high).'],
  [{ networkTier: 'best' }, 'local: its networks cannot be chosen (network_tier: best).'],
] as const)('an ability that a place has not is named: %o', async ([wish, reason]) => {
  const alternatives = { order: 'any', choices: [someResources(wish)] } as const;
  expect((await planPlacement(request({ alternatives, places: statesOf(aStubPlace({ name: 'local' })) }))).notes).toEqual([reason]);
});

const spec = () => aMachineSpec();
/** A place that is shown machines, and answers for each region. */
const shows = (answer: (region: string) => Error | undefined, asked: string[] = []) => ({
  ...aws(),
  rehearse: async ({ region }: Offer) => {
    asked.push(region);
    const error = answer(region);
    if (error !== undefined) throw error;
  },
});

test('what is chosen is shown to its place, each kind once, and what is refused there is not chosen', async () => {
  const asked: string[] = [];
  const no = new PlaceRefusal('setup', 'region', 'The cluster east refuses it: no PriorityClass with name nope was found', {
    hint: 'Make it.',
  });
  const place = shows((region) => (region === 'east' ? no : undefined), asked);
  const plan = await planPlacement(request({ spec, places: statesOf(place) }));
  expect(plan.offers.map(({ region, verdict, replicas }) => `${region} ${verdict} ${replicas.join()}`)).toEqual([
    'east refused ',
    'west chosen 1,2,3',
    'north possible ',
  ]);
  expect(plan.notes).toEqual(['aws/east/east-a: The cluster east refuses it: no PriorityClass with name nope was found. Make it.']);
  expect(asked).toEqual(['east', 'west']);
});

test('where every place refuses, nothing is chosen', async () => {
  const plan = await planPlacement(request({ spec, places: statesOf(shows(() => new PlaceRefusal('permission', 'place', 'No.'))) }));
  expect(hasChoice(plan)).toBe(false);
  expect(plan.notes).toHaveLength(2);
});

test('a place that cannot be asked beforehand keeps what is chosen for it, and so does one that never answers', async () => {
  const broken = await planPlacement(request({ replicas: 1, spec, places: statesOf(shows(() => new Error('connection refused'))) }));
  expect(broken.offers[0]).toMatchObject({ region: 'east', verdict: 'chosen' });
  expect(broken.notes).toEqual(['aws/east/east-a: it is not known whether it takes this: connection refused.']);
  const time = new FakeClock();
  const hanging = { ...aws(), rehearse: () => new Promise<void>(() => undefined) };
  const planning = planPlacement(request({ replicas: 1, spec, places: statesOf(hanging), clock: time }));
  await time.advance(8_000);
  expect((await planning).offers[0]).toMatchObject({ region: 'east', verdict: 'chosen' });
});

test('without a description of what would be asked for nobody is shown anything', async () => {
  const asked: string[] = [];
  await planPlacement(request({ places: statesOf(shows(() => undefined, asked)) }));
  expect(asked).toEqual([]);
});
