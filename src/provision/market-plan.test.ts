import { expect, test } from 'vitest';
import { aMachineSpec, anOffer, someResources } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { statesOf } from '../../test/support/providers.ts';
import { aStubProvider } from '../../test/support/stub-provider.ts';
import type { MarketRange } from '../domain/spot/markets.ts';
import { planByMarket } from './market-plan.ts';

const onDemand = anOffer({ provider: 'stub', region: 'r', zone: 'a', hourlyUsd: 1 });
const spotIn = (zone: string) => ({ ...onDemand, zone, spot: true, hourlyUsd: 0.3 });

const planOf = (range: MarketRange, zones: readonly string[]) =>
  planByMarket(
    {
      alternatives: { order: 'any', choices: [someResources({ useSpot: true })] },
      providers: statesOf(
        aStubProvider({
          offers: async ({ useSpot }) => ({ offers: useSpot ? zones.map(spotIn) : [onDemand], whyNone: undefined }),
          capabilities: { spot: true, stopResume: false, customImages: false, openPorts: true, multiNode: false, gpus: true },
        }),
      ),
      clock: new FakeClock(),
      explain: false,
      spec: () => () => aMachineSpec(),
    },
    range,
  );

test('a plan prices spot and base replicas, and the on-demand replicas while spot is missing', async () => {
  const plan = await planOf({ spot: 2, onDemand: 1, mostOnDemand: 3, needsZones: false }, ['a', 'b']);
  expect(plan.offers.map(({ spot, zone, replicas }) => [spot, zone, replicas])).toEqual([
    [true, 'a', [1]],
    [true, 'b', [2]],
    [false, 'a', [3]],
  ]);
  expect([plan.replicas, plan.hourlyUsd, plan.withoutSpot]).toEqual([3, 1.6, { replicas: 3, hourlyUsd: 3 }]);
});

test('the default hedge is priced only where spot has several zones', async () => {
  const range = { spot: 2, onDemand: 0, mostOnDemand: 2, needsZones: true };
  expect((await planOf(range, ['a', 'b'])).withoutSpot).toEqual({ replicas: 2, hourlyUsd: 2 });
  const one = await planOf(range, ['a']);
  expect([one.withoutSpot, one.offers.length]).toEqual([undefined, 1]);
});
