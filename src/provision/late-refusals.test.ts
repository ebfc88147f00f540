import { expect, test } from 'vitest';
import { anOffer } from '../../test/support/builders.ts';
import { SearchWorld } from '../../test/support/search-world.ts';
import { idOf } from '../../test/support/stub-provider.ts';
import { backoffOf, blockersOf, launchPace, refusalOf } from '../domain/placement/refusals.ts';
import type { MachineId, MachineStatus, Offer } from '../providers/provider.ts';
import { SvcError } from '../shared/errors.ts';
import { seededRandom, type Random } from '../shared/random.ts';
import type { MachineRequest } from './acquire-machine.ts';

const hourMs = 3_600_000;

/** Ends of accepted machines, in the forms in which providers report them. */
const ends: readonly Extract<MachineStatus, { state: 'gone' }>[] = [
  { state: 'gone', reason: 'unknown' },
  { state: 'gone', reason: 'deleted' },
  { state: 'gone', reason: 'preempted', message: 'Taken.' },
  { state: 'gone', reason: 'unknown', message: 'Something new.', mayPass: true },
  { state: 'gone', reason: 'unknown', message: 'TooManyDisks.', refusal: { kind: 'quota', scope: 'whole-region' } },
  { state: 'gone', reason: 'unknown', message: 'NoKey.', refusal: { kind: 'setup', scope: 'whole-region' } },
  { state: 'gone', reason: 'preempted', message: 'NoneLeft.', refusal: { kind: 'capacity', scope: 'zone' } },
];

/** Offers in separate regions, with rising prices. */
const market = Array.from({ length: 30 }, (_, index) => anOffer({ region: `r${index}`, zone: `r${index}-a`, hourlyUsd: 1 + index }));

/**
 * Launches of a service at a provider whose machines end some time after it accepted them, until `worksFrom` ms after
 * the start.
 */
class LateWorld {
  readonly launches: { readonly at: number; readonly hourlyUsd: number }[] = [];
  readonly searches: readonly ReturnType<SearchWorld['launch']>[];
  readonly world: SearchWorld;

  constructor(random: Random, replicas: number, worksFrom = Number.POSITIVE_INFINITY) {
    const lateMs = [0, random() * 5_000, random() * 80_000][Math.floor(random() * 3)] ?? 0;
    const end = ends[Math.floor(random() * ends.length)] ?? { state: 'gone', reason: 'unknown' };
    const statusOf = (id: string): MachineStatus => {
      const at = this.launches[Number(id)]?.at ?? 0;
      if (at >= worksFrom) return { state: 'running' };
      return this.world.clock.monotonic() - at >= lateMs ? end : { state: 'booting' };
    };
    const accept = ({ hourlyUsd }: Offer): MachineId => {
      this.launches.push({ at: this.world.clock.monotonic(), hourlyUsd });
      return idOf(String(this.launches.length - 1));
    };
    this.world = new SearchWorld(market, accept, {
      inspect: (ids) => Promise.resolve(new Map(ids.map((id) => [id, statusOf(id)]))),
    });
    this.searches = Array.from({ length: replicas }, (_, replica) => this.world.launch({ key: `replica-${replica}` }));
  }

  async end(): Promise<void> {
    this.world.stop.abort();
    this.world.process.abort();
    await this.world.clock.settle();
  }
}

/** Number of pauses in an hour. After regions have failed, a service launches one machine after each pause. */
function pausesInAnHour(): number {
  let count = 0;
  for (let ms = 0, pause = launchPace.firstMs; ms <= hourMs; pause = Math.min(launchPace.longestMs, pause * 2)) {
    ms += pause;
    count += 1;
  }
  return count;
}

/**
 * Offers tried before the pause between launches equals the cheapest offer's first backoff. That backoff is at most 60
 * s. The pause starts at 10 s, so it needs a little more than two doublings.
 */
const mostOffers = 4;

test.for(Array.from({ length: 20 }, (_, index) => index))(
  'when every launch fails late, launches stay few and cheap (seeds %d0 to %d9)',
  async (ten) => {
    for (let seed = 1 + ten * 10; seed <= 10 + ten * 10; seed += 1) {
      const random = seededRandom(seed);
      const replicas = 1 + Math.floor(random() * 8);
      const late = new LateWorld(random, replicas);
      await late.world.clock.advance(2 * hourMs);
      await late.end();
      const first = late.launches.filter(({ at }) => at < hourMs);
      const second = late.launches.length - first.length;
      const dearest = Math.max(...late.launches.map(({ hourlyUsd }) => hourlyUsd));
      // Each replica launches once before the first failure is known. Each launches once more before the fault is known
      // to exceed one region.
      expect({ seed, isBound: first.length <= 2 * replicas + pausesInAnHour() }).toEqual({ seed, isBound: true });
      expect({ seed, isPaced: second <= Math.ceil(hourMs / launchPace.longestMs) + 1 }).toEqual({ seed, isPaced: true });
      expect({ seed, isCheap: dearest <= mostOffers }).toEqual({ seed, isCheap: true });
      expect({ seed, isTrying: second > 0 }).toEqual({ seed, isTrying: true });
    }
  },
);

test('when the cause passes, all replicas get a machine within the longest pause', async () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const late = new LateWorld(seededRandom(seed), 5, hourMs / 2);
    await late.world.clock.advance(hourMs / 2 + launchPace.longestMs + 120_000);
    expect({ seed, given: late.searches.filter(({ given }) => given() !== undefined).length }).toEqual({ seed, given: 5 });
    await late.end();
  }
});

test('a late failure in one region does not block launches in another one', async () => {
  const full = { state: 'gone', reason: 'unknown', message: 'TooManyDisks.', refusal: { kind: 'quota', scope: 'whole-region' } } as const;
  const world = new SearchWorld(market.slice(0, 2), ({ region }) => idOf(`${region}-${world.asked.length}`), {
    inspect: (ids) => Promise.resolve(new Map(ids.map((id) => [id, id.startsWith('r0') ? full : { state: 'running' }]))),
  });
  const launches = [1, 2, 3].map((replica) => world.launch({ key: `replica-${replica}` }));
  await world.clock.advance(1_000);
  expect(launches.map(({ given }) => given()?.split(' ').at(-1))).toEqual(['r1', 'r1', 'r1']);
  const [blocker, ...others] = blockersOf(world.history.memory.refusals, world.clock.now());
  expect([blocker?.refusal.offer.region, blocker?.refusal.reason, others]).toEqual(['r0', expect.stringContaining('TooManyDisks'), []]);
  // Until the pause is over, only offers that may have room are asked.
  const before = world.asked.length;
  world.launch({ key: 'replica-4' });
  await world.clock.advance(1_000);
  expect(world.asked.slice(before)).toEqual(['r1']);
});

/** The only offer of a provider that failed late. A launch that retries it ends in one of these ways. */
const [only] = market;
const trials: Readonly<Record<string, (world: SearchWorld) => Partial<MachineRequest>>> = {
  'the provider fails permanently': () => ({ key: 'bad' }),
  'its machine can never run': () => ({ key: 'hopeless' }),
  'its ask cannot be recorded': () => ({ step: () => Promise.reject(new SvcError('SVC_STATE_BUSY', 'no.')) }),
  'it ends before it asks': (world) => ({
    step: () => {
      world.stop.abort();
      return world.clock.sleep(500);
    },
  }),
};

function unlessBad(_: Offer, key: string): MachineId {
  if (key.startsWith('bad')) throw new SvcError('SVC_INVALID_TASK', 'no.');
  return idOf('m');
}

test.for(Object.entries(trials))('after a late failure, a trial lets other launches try at once when %s', async ([, trial]) => {
  if (only === undefined) throw new Error('no offer');
  const world = new SearchWorld([only], unlessBad, {
    inspect: (ids) => Promise.resolve(new Map(ids.map((id) => [id, { state: 'gone', reason: 'unknown', isHopeless: true }]))),
  });
  world.history.refusedLate(only, { kind: 'capacity', scope: 'zone', reason: 'no.' }, 0, world.clock.now());
  await world.clock.advance(backoffOf({ kind: 'capacity', scope: 'zone' }).firstMs);
  const { given } = world.launch(trial(world));
  await world.clock.advance(2_000);
  expect(given()).toBeDefined();
  expect(refusalOf(only, world.history.memory.refusals, world.clock.now())).toBeUndefined();
});

test('the end of an earlier launch does not end the wait for the trial', async () => {
  if (only === undefined) throw new Error('no offer');
  const gone = new Set<string>();
  const statusOf = (id: string): MachineStatus =>
    gone.has(id) ? { state: 'gone', reason: 'unknown', isHopeless: true } : { state: 'booting' };
  const world = new SearchWorld([only], (_, key) => idOf(key.slice(0, 5)), {
    inspect: (ids) => Promise.resolve(new Map(ids.map((id) => [id, statusOf(id)]))),
  });
  const early = world.launch({ key: 'early' });
  await world.clock.advance(1_000);
  world.history.refusedLate(only, { kind: 'capacity', scope: 'zone', reason: 'no.' }, 0, world.clock.now());
  await world.clock.advance(backoffOf({ kind: 'capacity', scope: 'zone' }).firstMs);
  world.launch({ key: 'trial' });
  await world.clock.advance(1_000);
  gone.add('early');
  await world.clock.advance(10_000);
  expect(early.given()).toContain('did not start');
  world.launch({ key: 'other' });
  await world.clock.advance(10_000);
  expect(world.asked).toHaveLength(2);
  gone.add('trial');
  await world.clock.advance(10_000);
  expect(world.asked).toHaveLength(3);
});
