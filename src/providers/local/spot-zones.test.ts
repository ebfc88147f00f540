import { expect, test } from 'vitest';
import { anOffer } from '../../../test/support/builders.ts';
import type { LocalSpotZone } from '../../domain/config.ts';
import { isMachineId } from '../provider.ts';
import type { MachineRecord } from './machine-store.ts';
import { reclaimOf, refuseByZone, runningUntil, spotOffers } from './spot-zones.ts';

const aZone = (name: string, room: number, change: Partial<LocalSpotZone> = {}): LocalSpotZone => ({
  name,
  region: 'here',
  room,
  hourlyUsd: 1,
  reclaimAfterSeconds: 30,
  rebalanceSeconds: 0,
  ...change,
});

function aMachine(id: string, createdAt: number, change: Partial<MachineRecord> = {}): MachineRecord {
  if (!isMachineId(id)) throw new Error('an id is empty');
  const isolation = { isolation: 'none', outbound: 'none', cookie: 'c', gpus: null, ownPort: null } as const;
  return { id, key: id, region: 'here', zone: 'a', tags: {}, ...isolation, createdAt, preempted: false, ...change };
}

const machines = [aMachine('old', 1), aMachine('new', 2)];
const reclaims = (zones: readonly LocalSpotZone[], all: readonly MachineRecord[] = machines, now = 1_000) =>
  all.map((one) => {
    const { ends, reclaimedAt } = reclaimOf(one, zones, all, now);
    return { ends, reclaimedAt };
  });

test('each zone of the region is an offer with its price and remaining room, cheapest first', () => {
  const zones = [aZone('a', 3), aZone('b', 0, { hourlyUsd: 0.5 }), aZone('c', 1, { region: 'elsewhere' })];
  const offers = spotOffers(anOffer({ region: 'here' }), zones, machines);
  expect(offers.map(({ zone, spot, hourlyUsd, room }) => [zone, spot, hourlyUsd, room])).toEqual([
    ['b', true, 0.5, 0],
    ['a', true, 1, 1],
  ]);
});

const ask = (zone: string, room: number) => () => refuseByZone([aZone('a', room)], anOffer({ zone, spot: true }), machines);

test('a full or unknown zone refuses a spot machine', () => {
  expect(ask('a', 2)).toThrow("The zone 'a' has 2 spot machines and room for 2");
  expect(ask('b', 2)).toThrow("no spot zone 'b'");
  expect(ask('a', 3)).not.toThrow();
});

test('when a zone shrinks, its newest machine gets a notice and ends at its time', () => {
  expect(reclaims([aZone('a', 2)])).toEqual([{ ends: false }, { ends: false }]);
  expect(reclaims([aZone('a', 1)])).toEqual([{ ends: false }, { ends: false, reclaimedAt: 31_000 }]);
  const noticed = [aMachine('old', 1), aMachine('new', 2, { reclaimedAt: 31_000 })];
  // The notice stays although there is room again, and the other machine is not reclaimed for it.
  expect(reclaims([aZone('a', 5)], noticed, 2_000)[1]).toEqual({ ends: false, reclaimedAt: 31_000 });
  expect(reclaims([aZone('a', 1)], noticed, 31_000)).toEqual([{ ends: false }, { ends: true, reclaimedAt: 31_000 }]);
});

test('a zone may recommend a rebalance before its notice', () => {
  const zones = [aZone('a', 1, { rebalanceSeconds: 60 })];
  const statusAt = (now: number, reclaimedAt?: number) => {
    const machine = aMachine('new', 2, reclaimedAt === undefined ? {} : { reclaimedAt });
    const reclaim = reclaimOf(machine, zones, [aMachine('old', 1), machine], now);
    return reclaim.ends ? 'ends' : runningUntil(reclaim);
  };
  const recommended = { state: 'running', notice: { kind: 'rebalance', at: undefined } };
  expect([statusAt(1_000), statusAt(60_999, 91_000)]).toEqual([recommended, recommended]);
  expect(statusAt(61_000, 91_000)).toEqual({ state: 'running', notice: { kind: 'interruption', at: 91_000 } });
  expect(statusAt(91_000, 91_000)).toBe('ends');
});

test('without notice time, or when its zone is gone, a machine ends at once', () => {
  expect(reclaims([aZone('a', 0, { reclaimAfterSeconds: 0 })]).map(({ ends }) => ends)).toEqual([true, true]);
  expect(reclaims([]).map(({ ends }) => ends)).toEqual([true, true]);
});

test('a machine that is not spot is never reclaimed', () => {
  const { zone: _zone, ...onDemand } = aMachine('own', 1);
  expect(reclaimOf(onDemand, [], [onDemand], 1_000)).toEqual({ ends: false, reclaimedAt: undefined });
});
