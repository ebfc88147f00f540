import { expect, test } from 'vitest';
import { aPlaceableOffer, aReplica } from '../../../test/support/builders.ts';
import { aTaskWith } from '../../../test/support/reconcile-world.ts';
import type { Candidate, PlaceableOffer } from '../placement.ts';
import type { OfferRecord, ReplicaRecord } from '../records.ts';
import { planReplicaPlacement } from './plan.ts';
import { orderCandidates } from './rank.ts';
import { readySeconds, wakeOrder } from './wake.ts';

const offerOf = (provider: string, region: string): OfferRecord => ({
  provider,
  region,
  zone: null,
  instanceType: 'small',
  resources: '1x',
  gpus: 0,
  spot: false,
  hourlyUsd: 1,
});

/** A replica that became ready there after `seconds`. */
const started = (provider: string, region: string, seconds: number): ReplicaRecord =>
  aReplica({
    offer: offerOf(provider, region),
    state: 'TERMINATED',
    createdAt: 0,
    launchedAt: 5_000,
    firstReadyAt: 5_000 + seconds * 1_000,
  });

const candidate = (provider: string, region: string, hourlyUsd: number, change: Partial<PlaceableOffer> = {}): Candidate => ({
  offer: aPlaceableOffer({ provider, region, hourlyUsd, ...change }),
  alternative: 0,
});

const order = (candidates: readonly Candidate[], replicas: readonly ReplicaRecord[]): readonly string[] =>
  orderCandidates(candidates, {
    order: 'any',
    refusals: [],
    starts: [],
    occupied: [],
    now: 0,
    readySeconds: readySeconds(replicas),
  }).map(({ offer }) => `${offer.provider}/${offer.region}`);

test('without history, this machine comes first, then running machines with room, then clouds by price', () => {
  const candidates = [
    candidate('aws', 'dear', 2),
    candidate('aws', 'cheap', 1),
    candidate('kubernetes', 'full', 0, { room: 0 }),
    candidate('kubernetes', 'free', 3, { room: 2 }),
    candidate('local', 'local', 9),
  ];
  expect(order(candidates, [])).toEqual(['local/local', 'kubernetes/free', 'kubernetes/full', 'aws/cheap', 'aws/dear']);
});

test('the measured time decides, and the price only between equal times', () => {
  const replicas = [started('aws', 'slow', 400), started('aws', 'quick', 100), started('aws', 'even', 104)];
  expect(order([candidate('aws', 'slow', 1), candidate('aws', 'quick', 3), candidate('aws', 'even', 2)], replicas)).toEqual([
    'aws/even',
    'aws/quick',
    'aws/slow',
  ]);
});

test('an unmeasured location takes at least as long as the program took at others', () => {
  const seconds = readySeconds([started('local', 'local', 100), started('aws', 'known', 350)]);
  expect([seconds(candidate('ssh', 'pool', 0).offer), seconds(candidate('local', 'local', 0).offer)]).toEqual([130, 100]);
});

test('a measured location gives the median of its times', () => {
  const replicas = [started('aws', 'r', 500), started('aws', 'r', 90), started('aws', 'r', 100)];
  expect(readySeconds(replicas)(candidate('aws', 'r', 1).offer)).toBe(100);
});

test('time comes first only with wake: fastest, while requests wait and no replica is ready', () => {
  const fastest = aTaskWith({ wake: 'fastest' });
  expect(wakeOrder(fastest, { queued: 1, replicas: [aReplica({ state: 'STARTING' })] })).toBeDefined();
  expect(wakeOrder(fastest, { queued: 0, replicas: [] })).toBeUndefined();
  expect(wakeOrder(fastest, { queued: 1, replicas: [aReplica({ state: 'READY' })] })).toBeUndefined();
  expect(wakeOrder(aTaskWith(), { queued: 1, replicas: [] })).toBeUndefined();
});

test('a plan explains that a cheaper location would be ready later', () => {
  const facts = { order: 'any', refusals: [], starts: [], occupied: [], now: 0, readySeconds: readySeconds([]) } as const;
  const plan = planReplicaPlacement([candidate('aws', 'cheap', 1), candidate('ssh', 'pool', 2), candidate('ssh', 'dear', 3)], 1, facts);
  expect(plan.map(({ candidate: { offer }, verdict }) => [offer.region, verdict.type])).toEqual([
    ['pool', 'chosen'],
    ['dear', 'dearer'],
    ['cheap', 'later-ready'],
  ]);
});
