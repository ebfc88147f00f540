import { expect, test } from 'vitest';
import { anOffer } from '../../test/support/builders.ts';
import { SearchWorld } from '../../test/support/search-world.ts';
import { aStubProvider, idOf } from '../../test/support/stub-provider.ts';
import { ProviderRefusal } from '../providers/provider-refusal.ts';

const refuse = (): never => {
  throw new ProviderRefusal('capacity', 'zone', 'no: capacity.');
};

test('offers above the price limit are passed over until it allows them', async () => {
  let mostUsd = 0.5;
  const world = new SearchWorld(
    ['free', 'dear', 'dearer'].map((region, hourlyUsd) => anOffer({ region, hourlyUsd })),
    ({ region }) => (region === 'free' ? refuse() : idOf('m')),
  );
  const { notes, given } = world.launch({ mostUsd: () => mostUsd });
  await world.clock.advance(10_000);
  expect([world.asked, notes]).toEqual([['free'], ['asking free', 'refused free', 'too-dear dear']]);
  mostUsd = 1;
  await world.clock.advance(10_000);
  expect([given(), world.asked]).toEqual(['m at dear', ['free', 'dear']]);
});

test('the price limit counts all nodes of a machine', async () => {
  const world = new SearchWorld([anOffer({ hourlyUsd: 1 })], () => idOf('m'), {
    capabilities: { ...aStubProvider().capabilities, multiNode: true },
  });
  const { given } = world.launch({ nodes: 3, mostUsd: () => 2.9 });
  const enough = world.launch({ key: 'other', nodes: 3, mostUsd: () => 3 });
  await world.clock.advance(60_000);
  expect([given(), enough.given()]).toEqual([undefined, expect.stringContaining('m at')]);
});

test('a launch holds its price from the ask until its record has the machine', async () => {
  const world = new SearchWorld([anOffer({ region: 'one' }), anOffer({ region: 'two' })], async ({ region }) => {
    await world.clock.sleep(1_000);
    return idOf(region);
  });
  const { hourlyUsd } = anOffer();
  const mostUsd = (): number => 1.5 * hourlyUsd - world.history.heldBy('a');
  world.launch({
    key: 'a',
    step: async ({ type }) => {
      if (type === 'given') await world.clock.sleep(1_000);
    },
  });
  const second = world.launch({ key: 'b', mostUsd });
  await world.clock.advance(1_900);
  expect([world.asked.length, second.notes.length, world.history.heldBy('a')]).toEqual([1, 1, hourlyUsd]);
  await world.clock.advance(2_000);
  expect([world.asked.length, world.history.heldBy('a')]).toEqual([2, 0]);
});
