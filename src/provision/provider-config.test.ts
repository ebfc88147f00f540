import { expect, test } from 'vitest';
import { aMachineSpec, anOffer, someResources } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { statesOf } from '../../test/support/providers.ts';
import { aStubProvider, idOf } from '../../test/support/stub-provider.ts';
import { obtainMachine } from './acquire-machine.ts';
import { PlacementHistory } from './placement-history.ts';

test("a search passes the task's provider configuration to the providers", async () => {
  const providerConfig = { kubernetes: { podConfig: { spec: { nodeSelector: { disk: 'ssd' } } } } };
  const received: unknown[] = [];
  const clock = new FakeClock();
  const { signal } = new AbortController();
  const provider = aStubProvider({
    offers: async (_, options) => {
      received.push(options.providerConfig);
      return { offers: [anOffer({ provider: 'stub' })], whyNone: undefined };
    },
    create: async () => idOf('m1'),
    inspect: async (ids) => new Map(ids.map((id) => [id, { state: 'running' } as const])),
  });
  const request = {
    alternatives: { order: 'any', choices: [someResources()] } as const,
    providerConfig,
    providers: async () => statesOf(provider),
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
  expect(received).toEqual([providerConfig]);
});
