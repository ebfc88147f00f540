import { expect, test } from 'vitest';
import { aMachineSpec, anOffer, someResources } from '../../test/support/builders.ts';
import { statesOf } from '../../test/support/providers.ts';
import { SearchWorld, type Create } from '../../test/support/search-world.ts';
import { aStubProvider, idOf } from '../../test/support/stub-provider.ts';
import type { RefusalKind, RefusalScope } from '../domain/placement.ts';
import { ProviderRefusal } from '../providers/provider-refusal.ts';
import type { MachineId, Offer, Provider } from '../providers/provider.ts';
import { SvcError } from '../shared/errors.ts';
import { askKey } from './ask-keys.ts';
import { PlacementHistory } from './placement-history.ts';

/** Offers at rising prices, one in each of the named regions. */
const offersIn = (...regions: readonly string[]): readonly Offer[] => regions.map((region, index) => anOffer({ region, hourlyUsd: index }));

const refuse = (kind: RefusalKind, scope: RefusalScope = 'zone'): never => {
  throw new ProviderRefusal(kind, scope, `no: ${kind}.`);
};

const never = (): Promise<MachineId> => new Promise(() => undefined);

test('each step is recorded before it is taken, and offers are tried by price', async () => {
  const world = new SearchWorld(offersIn('cheap', 'dear').toReversed(), ({ region }) =>
    region === 'cheap' ? refuse('capacity') : idOf('m1'),
  );
  const { notes, given } = world.launch();
  await world.clock.advance(1_000);
  expect([given(), world.asked]).toEqual(['m1 at dear', ['cheap', 'dear']]);
  expect(notes).toEqual(['asking cheap', 'refused cheap', 'asking dear', 'given dear']);
});

test('when every provider is full, the search retries with a growing backoff', async () => {
  const askedAt: number[] = [];
  const world = new SearchWorld(offersIn('only'), () => {
    askedAt.push(world.clock.now());
    return askedAt.length < 4 ? refuse('capacity') : idOf('m1');
  });
  const { notes, given } = world.launch();
  await world.clock.advanceUntil(() => given() !== undefined);
  expect(askedAt.map((at) => at - (askedAt[0] ?? 0))).toEqual([0, 30_000, 90_000, 210_000]);
  // Each refusal step already carries the reason and the time. With a single offer, a `waiting` step would repeat it.
  expect(notes.filter((note) => note.startsWith('waiting'))).toEqual([]);
});

test('launches of one service do not ask a provider that refused another launch', async () => {
  const world = new SearchWorld(offersIn('full', 'free'), ({ region }) => (region === 'full' ? refuse('capacity') : idOf('m')));
  world.launch({ key: 'a' });
  await world.clock.advance(1_000);
  world.launch({ key: 'b' });
  await world.clock.advance(1_000);
  expect(world.asked).toEqual(['full', 'free', 'free']);
});

test('a restarted process does not repeat asks that were refused for lack of capacity', async () => {
  let saved = new PlacementHistory().memory;
  const world = new SearchWorld(offersIn('full', 'free'), ({ region }) => (region === 'full' ? refuse('capacity', 'region') : idOf('m')));
  world.history = new PlacementHistory({ save: (memory) => (saved = memory) });
  world.launch({ key: 'a' });
  await world.clock.advance(1_000);
  world.history = new PlacementHistory({ memory: JSON.parse(JSON.stringify(saved)) });
  world.launch({ key: 'b' });
  await world.clock.advance(1_000);
  expect(world.asked).toEqual(['full', 'free', 'free']);
});

test('concurrent launches spread over locations of equal price', async () => {
  const offers = ['east', 'west', 'north'].map((region) => anOffer({ region }));
  const world = new SearchWorld(offers, ({ region }) => idOf(region));
  const launches = ['a', 'b', 'c'].map((key) => world.launch({ key }));
  await world.clock.advance(100);
  expect(new Set(launches.map(({ given }) => given()))).toEqual(new Set(['east at east', 'north at north', 'west at west']));
});

const slowly = async (world: () => SearchWorld, answer: () => MachineId): Promise<MachineId> => {
  await world().clock.sleep(2_000);
  return answer();
};

test('the steps of a search do not grow with the number of launches', async () => {
  const launches = 200;
  let steps = 0;
  const accept = async (_: Offer, key: string): Promise<MachineId> => {
    await world.clock.sleep(50);
    return idOf(key);
  };
  const world = new SearchWorld([anOffer()], accept);
  const occupied = (): readonly [] => {
    steps += 1;
    return [];
  };
  const searches = Array.from({ length: launches }, (_, number) => world.launch({ key: `replica-${number}`, occupied }));
  for (let round = 0; round < 100; round += 1) await world.clock.advance(50);
  expect(searches.filter(({ given }) => given() !== undefined)).toHaveLength(launches);
  expect(steps / launches).toBeLessThan(10);
});

test('one launch tries a location first; the others follow or avoid it', async () => {
  const good: SearchWorld = new SearchWorld(offersIn('cheap', 'dear'), () =>
    slowly(
      () => good,
      () => idOf('m'),
    ),
  );
  const full: SearchWorld = new SearchWorld(offersIn('cheap', 'dear'), ({ region }) =>
    slowly(
      () => full,
      () => (region === 'cheap' ? refuse('capacity') : idOf('m')),
    ),
  );
  for (const world of [good, full]) {
    for (const key of ['a', 'b', 'c']) world.launch({ key });
    await world.clock.advance(1_900);
    expect(world.asked).toEqual(['cheap']);
    await world.clock.advance(10_000);
  }
  expect([good.asked, full.asked]).toEqual([
    ['cheap', 'cheap', 'cheap'],
    ['cheap', 'dear', 'dear', 'dear'],
  ]);
});

test('while a provider is slow others are asked, and its late machine is terminated', async () => {
  const world: SearchWorld = new SearchWorld(offersIn('slow', 'quick'), async ({ region }) => {
    await world.clock.sleep(region === 'slow' ? 40_000 : 1_000);
    return idOf(region);
  });
  const { notes, given } = world.launch();
  await world.clock.advance(7_000);
  expect(given()).toBe('quick at quick');
  expect(world.history.isBusy).toBe(true);
  await world.clock.advance(40_000);
  expect([world.destroyed, world.history.isBusy]).toEqual([['slow'], false]);
  expect(notes.slice(-2)).toEqual(['given quick', 'surplus slow']);
});

test('a provider that hangs is given up and searched for machines it created', async () => {
  const searched: unknown[] = [];
  const list = (tags: unknown) => Promise.resolve((searched.push(tags), []));
  const world = new SearchWorld(offersIn('hangs'), never, { list });
  const { notes } = world.launch();
  await world.clock.advance(200_000);
  expect(notes.slice(0, 2)).toEqual(['asking hangs', 'refused hangs']);
  expect(searched).toEqual([{ 'svc-key': askKey('key', anOffer({ region: 'hangs' })) }]);
});

test('a transient error is retried three times before the next location is asked', async () => {
  const world = new SearchWorld(offersIn('shaky', 'solid'), ({ region }) => {
    if (region === 'shaky') throw new SvcError('SVC_PLACE_FAILED', 'connection reset');
    return idOf('m1');
  });
  const { given } = world.launch();
  await world.clock.advance(6_000);
  expect([given(), world.asked]).toEqual(['m1 at solid', ['shaky', 'shaky', 'shaky', 'solid']]);
  // An error is no answer about machines: the location is asked again much sooner than one without capacity.
  const learned = world.history.memory.refusals.map(({ kind, scope, at = 0, until }) => [kind, scope, until - at]);
  expect(learned).toEqual([['provider-error', 'whole-region', 3_750]]);
});

test.for<readonly [string, () => never]>([
  ['a refusal for the whole provider', () => refuse('permission', 'provider')],
  [
    'expired credentials',
    () => {
      throw new SvcError('SVC_CREDENTIALS', 'The session has expired.');
    },
  ],
])('an unusable provider does not end the launch while others remain: %s', async ([, fail]) => {
  const world = new SearchWorld([anOffer({ region: 'a' }), anOffer({ region: 'b' })], fail);
  const other = aStubProvider({
    name: 'other',
    offers: () => Promise.resolve({ offers: [anOffer({ provider: 'other', region: 'there', hourlyUsd: 9 })], whyNone: undefined }),
    create: () => Promise.resolve(idOf('m1')),
    inspect: (ids) => Promise.resolve(new Map(ids.map((id) => [id, { state: 'running' }]))),
  });
  const { given } = world.launch({ providers: () => Promise.resolve(statesOf(world.provider, other)) });
  await world.clock.advance(100);
  expect([given(), world.asked]).toEqual(['m1 at there', ['a']]);
});

test('when no provider is left, the reason of each is reported once', async () => {
  const said: string[] = [];
  const world = new SearchWorld(offersIn('a'), () => {
    throw new SvcError('SVC_DENIED', 'ec2:RunInstances is not allowed.');
  });
  const { notes } = world.launch();
  await world.clock.advance(100);
  // The refusal was reported just before; a `waiting` step would repeat it.
  expect(notes).toEqual(['asking a', 'refused a']);
  // A second launch sends no ask.
  world.launch({
    key: 'other',
    step: async (step) => {
      if (step.type === 'waiting') said.push(...step.reasons);
      await Promise.resolve();
    },
  });
  await world.clock.advance(100);
  expect(said).toEqual(['stub/a: ec2:RunInstances is not allowed.']);
});

test('a throttled location is retried after a pause before a dearer one is asked', async () => {
  let left = 1;
  const world = new SearchWorld(offersIn('cheap', 'dear'), ({ region }) => {
    left -= 1;
    return region === 'cheap' && left >= 0 ? refuse('throttled', 'provider') : idOf('m1');
  });
  const { given } = world.launch();
  await world.clock.advance(3_000);
  expect([given(), world.asked]).toEqual(['m1 at cheap', ['cheap', 'cheap']]);

  const always = new SearchWorld([...offersIn('cheap'), anOffer({ provider: 'stub', region: 'dear', hourlyUsd: 5 })], ({ region }) =>
    region === 'cheap' ? refuse('throttled', 'whole-region') : idOf('m1'),
  );
  const late = always.launch();
  await always.clock.advance(10_000);
  expect([late.given(), always.asked]).toEqual(['m1 at dear', ['cheap', 'cheap', 'dear']]);
});

test('a machine that does not boot is terminated and never requested again', async () => {
  const keys: string[] = [];
  const world = new SearchWorld(offersIn('bad', 'good'), ({ region }, key) => {
    keys.push(key);
    return idOf(`${region}-${keys.length}`);
  });
  world.states = { 'bad-1': { state: 'booting' }, 'good-2': { state: 'gone', reason: 'preempted' } };
  const { notes, given } = world.launch();
  await world.clock.advance(1_000_000);
  expect(given()).toBe('bad-3 at bad');
  expect(notes.filter((note) => note.startsWith('lost'))).toEqual(['lost bad', 'lost good']);
  expect(world.destroyed).toEqual(['bad-1', 'good-2']);
  expect(new Set(keys).size).toBe(3);
});

test('a machine from before a crash is adopted, and replaced if it fails', async () => {
  const world = new SearchWorld(offersIn('a', 'b'), ({ region }) => idOf(region));
  const found = { provider: world.provider, offer: anOffer({ region: 'a' }), machineId: idOf('old'), askedAt: 0 };
  const adopted = world.launch({}, found);
  await world.clock.advance(1_000);
  expect([adopted.given(), world.asked]).toEqual(['old at a', []]);
  world.states = { old: { state: 'gone', reason: 'unknown' } };
  const replaced = world.launch({}, { ...found, offer: anOffer({ region: 'a', hourlyUsd: 0 }) });
  await world.clock.advance(11_000);
  expect([replaced.given(), world.asked]).toEqual(['b at b', ['b']]);
});

const offersForLargeDisks: Provider['offers'] = ({ diskSizeGb }) =>
  Promise.resolve({ offers: diskSizeGb === 500 ? [anOffer()] : [], whyNone: 'none' });

test("the machine's specification follows from its resource alternative", async () => {
  const choices = [someResources({ diskSizeGb: 10 }), someResources({ diskSizeGb: 500 })];
  const sizes: number[] = [];
  const create: Create = (_offer, _key, spec) => (sizes.push(spec.diskSizeGb), idOf('m1'));
  const world = new SearchWorld([], create, { offers: offersForLargeDisks });
  world.launch({
    alternatives: { order: 'ordered', choices },
    spec: ({ alternative }) => aMachineSpec({ diskSizeGb: choices[alternative]?.diskSizeGb ?? 0 }),
  });
  await world.clock.advance(1_000);
  expect(sizes).toEqual([500]);
});

test('each machine has its idempotency key as a tag, one per kind', async () => {
  const tags: unknown[] = [];
  const world = new SearchWorld(offersIn('a', 'b'), ({ region }, key, spec) => {
    tags.push([key, spec.tags['svc-key']]);
    return region === 'a' ? refuse('capacity') : idOf('m1');
  });
  world.launch();
  await world.clock.advance(1_000);
  const keys = ['a', 'b'].map((region) => askKey('key', anOffer({ region })));
  expect(tags).toEqual(keys.map((key) => [key, key]));
});

test('an error that no other provider can fix ends the search', async () => {
  const world = new SearchWorld(offersIn('a', 'b'), () => {
    throw new SvcError('SVC_INVALID_TASK', 'no such image');
  });
  const { given } = world.launch();
  await world.clock.advance(100);
  expect([given(), world.asked]).toEqual(['SvcError: no such image', ['a']]);
});

test('a cancelled search ends at once, and machines that arrive later are terminated', async () => {
  const world: SearchWorld = new SearchWorld(offersIn('slow'), async () => {
    await world.clock.sleep(3_000);
    return idOf('late');
  });
  const { given } = world.launch();
  await world.clock.advance(1_000);
  world.stop.abort();
  await world.clock.settle();
  expect([given(), world.destroyed]).toEqual(['AbortError: This operation was aborted', []]);
  await world.clock.advance(3_000);
  expect([world.destroyed, world.clock.pendingTimers]).toEqual([['late'], 0]);
});

test('when the process stops, all searches end at once', async () => {
  const world = new SearchWorld(offersIn('slow', 'slower'), never);
  world.launch();
  await world.clock.advance(6_000);
  expect(world.asked).toHaveLength(2);
  world.process.abort();
  world.stop.abort();
  await world.clock.settle();
  expect([world.history.isBusy, world.clock.pendingTimers]).toEqual([false, 0]);
});

test('a provider without offers for now does not end the search', async () => {
  let calls = 0;
  const offers: Provider['offers'] = () => {
    calls += 1;
    if (calls === 1) return Promise.reject(new SvcError('SVC_PLACE_FAILED', 'connection reset.'));
    return Promise.resolve({ offers: [anOffer()], whyNone: undefined });
  };
  const reasons: string[] = [];
  const world = new SearchWorld([], () => idOf('m1'), { offers });
  const { given } = world.launch({
    step: async (step) => {
      if (step.type === 'waiting') reasons.push(...step.reasons);
      await Promise.resolve();
    },
  });
  await world.clock.advance(16_000);
  expect([given(), reasons]).toEqual(['m1 at here', ['stub: connection reset.']]);
});

const hopeless = { state: 'gone', reason: 'unknown', message: 'No such image.', isHopeless: true } as const;

test('where a machine can never run, the search asks the next location or fails', async () => {
  const world = new SearchWorld(offersIn('bad', 'good'), ({ region }) => idOf(region));
  world.states = { bad: hopeless };
  const { notes, given } = world.launch();
  await world.clock.advance(2_000);
  expect([given(), world.destroyed]).toEqual(['good at good', ['bad']]);
  expect(notes).toEqual(['asking bad', 'given bad', 'lost bad', 'asking good', 'given good']);
  // The refusal does not apply to other launches: they may use another image.
  expect(world.history.memory.refusals).toEqual([]);

  world.states = { bad: hopeless, good: hopeless };
  const second = world.launch({ key: 'second' });
  await world.clock.advance(2_000);
  expect(second.given()).toBe(
    'SvcError: The machine at stub/bad did not start: No such image. The machine at stub/good did not start: No such image.',
  );
});

test('where one image can never run, an alternative with another image may', async () => {
  const alternatives = {
    order: 'ordered',
    choices: [someResources({ imageId: 'docker:bad' }), someResources({ imageId: 'docker:good' })],
  } as const;
  const capabilities = { ...aStubProvider().capabilities, customImages: true };
  let made = 0;
  const world = new SearchWorld(offersIn('only'), () => idOf(`m${(made += 1)}`), { capabilities });
  world.states = { m1: hopeless };
  const { given } = world.launch({ alternatives });
  await world.clock.advance(2_000);
  expect([given(), world.asked]).toEqual(['m2 at only', ['only', 'only']]);
});

test("a booting machine's message is recorded, and the provider can notify of changes", async () => {
  const watchers: (() => void)[] = [];
  const watch = (onChange: () => void): void => void watchers.push(onChange);
  const world = new SearchWorld(offersIn('only'), () => idOf('m'), { watch });
  world.states = { m: { state: 'booting', message: 'Pulling image.' } };
  const { notes, given } = world.launch();
  await world.clock.advance(5_100);
  expect(notes).toEqual(['asking only', 'given only', 'booting only']);
  world.states = {};
  for (const notify of watchers) notify();
  await world.clock.settle();
  expect(given()).toBe('m at only');
});

test("a namespace's refusal ends when its provider reports room, after one second or more", async () => {
  const freed: (() => void)[] = [];
  const watchQuota = (_region: string, onFreed: () => void): void => void freed.push(onFreed);
  const askedAt: number[] = [];
  const world: SearchWorld = new SearchWorld(
    offersIn('only'),
    () => {
      askedAt.push(world.clock.monotonic());
      return askedAt.length < 4 ? refuse('quota', 'namespace') : idOf('m1');
    },
    { watchQuota },
  );
  const { given } = world.launch();
  await world.clock.advance(100);
  freed.at(-1)?.();
  await world.clock.advance(1_000);
  // The next backoff is 10 s, and the one after it 20 s.
  await world.clock.advance(2_900);
  freed.at(-1)?.();
  await world.clock.advance(12_000);
  expect(askedAt.map((at) => at - (askedAt[0] ?? 0))).toEqual([0, 1_000, 4_000]);
  freed.at(-1)?.();
  await world.clock.settle();
  expect([given(), askedAt.length]).toEqual(['m1 at only', 4]);
});
