import { expect, test } from 'vitest';
import { aMachineSpec, anOffer, someResources } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { statesOf } from '../../test/support/places.ts';
import { aStubPlace, idOf } from '../../test/support/stub-place.ts';
import { obtainMachine } from './acquire-machine.ts';
import { PlacementHistory } from './placement-history.ts';

test('whoever looks for a machine tells places what the task says for them', async () => {
  const placeConfig = { kubernetes: { podConfig: { spec: { nodeSelector: { disk: 'ssd' } } } } };
  const heard: unknown[] = [];
  const clock = new FakeClock();
  const { signal } = new AbortController();
  const place = aStubPlace({
    offers: async (_, options) => {
      heard.push(options.placeConfig);
      return { offers: [anOffer({ provider: 'stub' })], whyNone: undefined };
    },
    create: async () => idOf('m1'),
    inspect: async (ids) => new Map(ids.map((id) => [id, { state: 'running' } as const])),
  });
  const request = {
    alternatives: { order: 'any', choices: [someResources()] } as const,
    placeConfig,
    places: async () => statesOf(place),
    history: new PlacementHistory(),
    occupied: () => [],
    spec: () => aMachineSpec(),
    key: 'key',
    clock,
    step: async () => undefined,
    background: signal,
  };
  let isGiven = false;
  const given = obtainMachine(request, undefined, signal).then(() => (isGiven = true));
  await clock.advanceUntil(() => isGiven);
  await given;
  expect(heard).toEqual([placeConfig]);
});
