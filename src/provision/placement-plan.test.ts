import { expect, test } from 'vitest';
import { anOffer, someResources } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { aDisabledPlace, statesOf } from '../../test/support/places.ts';
import { aStubPlace } from '../../test/support/stub-place.ts';
import { rememberRefusal } from '../domain/placement/refusals.ts';
import type { OfferList } from '../providers/provider.ts';
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
    'east chosen 1,3: the best that may be asked',
    'west chosen 2: the best that may be asked',
    'north possible : 0.50 $/h dearer',
  ]);
  expect((await lines({ explain: true })).slice(3)).toEqual(['east excluded : has no GPU']);
});

test('what the replicas cost together, by the hour and by the month of 730 hours', async () => {
  const plan = await planPlacement(request({ replicas: 4 }));
  expect([plan.hourlyUsd, plan.monthlyUsd, plan.offers[0]?.monthlyUsd]).toEqual([4, 2_920, 730]);
  expect(plan.offers[0]).toMatchObject({ accelerators: 'L4:1', zone: 'east-a', alternative: 1 });
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
