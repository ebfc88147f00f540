import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { aMachineSpec, someResources } from '../../test/support/builders.ts';
import { assertMachineId, type MachineId, type MachineStatus, type Offer, type Provider } from '../providers/provider.ts';
import { SvcError } from '../shared/errors.ts';
import { acquireMachine, destroyMachine, PlacementHistory, waitUntilRunning, type MachineRequest } from './machine.ts';

const anOffer = (region: string, hourlyUsd = 0): Offer => ({
  provider: 'stub',
  region,
  zone: undefined,
  instanceType: 'host',
  cpus: 2,
  memoryGb: 4,
  accelerator: undefined,
  spot: false,
  hourlyUsd,
});

const idOf = (text: string): MachineId => {
  assertMachineId(text);
  return text;
};

const notUsed = (): never => {
  throw new Error('not used here');
};

/** A place with the given offers whose `create` does what the test says. */
function aPlace(offers: readonly Offer[], create: (offer: Offer) => MachineId, states: readonly MachineStatus[] = []): Provider {
  const left = [...states];
  return {
    name: 'stub',
    capabilities: { spot: false, stopResume: false, customImages: false, openPorts: false, multiNode: false, gpus: false },
    check: () => Promise.resolve({ enabled: true, summary: '', remedies: [], details: [], sharedPorts: undefined }),
    offers: () => Promise.resolve({ offers, whyNone: undefined }),
    create: async (offer) => create(offer),
    inspect: (ids) => Promise.resolve(new Map(ids.map((id) => [id, left.shift() ?? { state: 'gone', reason: 'deleted' }]))),
    destroy: () => Promise.resolve(),
    list: () => Promise.resolve([]),
    remote: notUsed,
    stop: notUsed,
    start: notUsed,
    release: notUsed,
  };
}

/** A request whose notes can be read afterwards. */
function aRequest(place: Provider, clock: FakeClock, history = new PlacementHistory()) {
  const notes: string[] = [];
  const request: MachineRequest = {
    alternatives: { order: 'any', choices: [someResources()] },
    providers: [place],
    history,
    occupied: () => [],
    spec: aMachineSpec(),
    key: 'key',
    clock,
    log: () => undefined,
    intend: async (offer) => void notes.push(`intend ${offer.region}`),
    refused: async (offer) => void notes.push(`refused ${offer.region}`),
    waiting: async (until) => void notes.push(`waiting ${until - clock.now()} ms`),
  };
  return { request, notes };
}

const capacity = (): never => {
  throw new SvcError('SVC_CAPACITY', 'full');
};

test('records the intent before it asks, and goes down the offers by price', async () => {
  const asked: string[] = [];
  const clock = new FakeClock();
  const place = aPlace([anOffer('dear', 2), anOffer('cheap', 1)], ({ region }) => {
    asked.push(region);
    return region === 'cheap' ? capacity() : idOf('m1');
  });
  const { request, notes } = aRequest(place, clock);
  const given = await acquireMachine(request, new AbortController().signal);
  expect([given.offer.region, given.machineId, asked]).toEqual(['dear', 'm1', ['cheap', 'dear']]);
  expect(notes).toEqual(['intend cheap', 'refused cheap', 'intend dear']);
});

test('when every place is full it waits and asks again, ever more seldom', async () => {
  const clock = new FakeClock();
  let asked = 0;
  const place = aPlace([anOffer('only')], () => {
    asked += 1;
    return asked < 4 ? capacity() : idOf('m1');
  });
  const { request, notes } = aRequest(place, clock);
  const given = acquireMachine(request, new AbortController().signal);
  let done = false;
  void given.then(() => (done = true));
  await clock.advanceUntil(() => done);
  expect(notes.filter((note) => note.startsWith('waiting'))).toEqual(['waiting 10000 ms', 'waiting 20000 ms', 'waiting 40000 ms']);
});

test('launches of one service do not ask a place that refused another of them', async () => {
  const clock = new FakeClock();
  const history = new PlacementHistory();
  const asked: string[] = [];
  const place = aPlace([anOffer('full', 1), anOffer('free', 2)], ({ region }) => {
    asked.push(region);
    return region === 'full' ? capacity() : idOf('m');
  });
  await acquireMachine(aRequest(place, clock, history).request, new AbortController().signal);
  await acquireMachine(aRequest(place, clock, history).request, new AbortController().signal);
  expect(asked).toEqual(['full', 'free', 'free']);
});

test('launches of the same moment spread over places of equal price', async () => {
  const clock = new FakeClock();
  const history = new PlacementHistory();
  const place = aPlace([anOffer('east'), anOffer('west')], ({ region }) => idOf(region));
  const launches = [1, 2].map(() => acquireMachine(aRequest(place, clock, history).request, new AbortController().signal));
  expect((await Promise.all(launches)).map(({ offer }) => offer.region).toSorted()).toEqual(['east', 'west']);
});

test('a passing fault is tried three times at the same place before the next one is asked', async () => {
  const clock = new FakeClock();
  const asked: string[] = [];
  const place = aPlace([anOffer('shaky', 1), anOffer('solid', 2)], ({ region }) => {
    asked.push(region);
    if (region === 'shaky') throw new SvcError('SVC_MACHINE_LOST', 'connection reset');
    return idOf('m1');
  });
  let region = '';
  void acquireMachine(aRequest(place, clock).request, new AbortController().signal).then((given) => (region = given.offer.region));
  await clock.advanceUntil(() => region !== '');
  expect([region, asked]).toEqual(['solid', ['shaky', 'shaky', 'shaky', 'solid']]);
});

test('an error that no other place would mend ends the search', async () => {
  const place = aPlace([anOffer('a'), anOffer('b')], () => {
    throw new SvcError('SVC_INVALID_TASK', 'no such image');
  });
  await expect(acquireMachine(aRequest(place, new FakeClock()).request, new AbortController().signal)).rejects.toThrow('no such image');
});

test('a cancelled search ends at once', async () => {
  const stop = new AbortController();
  const clock = new FakeClock();
  const searching = acquireMachine(aRequest(aPlace([anOffer('full')], capacity), clock).request, stop.signal);
  const ended = searching.catch((error: unknown) => String(error));
  await clock.settle();
  stop.abort();
  expect(await ended).toMatch(/abort/i);
  expect(clock.pendingTimers).toBe(0);
});

test('waits for a booting machine, and tells when it goes away instead', async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  const good = waitUntilRunning(aPlace([], capacity, [{ state: 'booting' }, { state: 'running' }]), idOf('m1'), clock, signal);
  await clock.advance(500);
  await good;
  const lost = aPlace([], capacity, [{ state: 'gone', reason: 'preempted' }]);
  await expect(waitUntilRunning(lost, idOf('m1'), clock, signal)).rejects.toThrow(
    'Machine m1 of stub went away while booting (preempted).',
  );
});

test('a machine is gone when the place says so, and one that stays is an error', async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  await destroyMachine(aPlace([], capacity), idOf('m1'), clock, 1_000, signal);
  const stays = aPlace(
    [],
    capacity,
    Array.from({ length: 50 }, () => ({ state: 'running' }) as const),
  );
  const failed = destroyMachine(stays, idOf('m1'), clock, 1_000, signal).catch((error: unknown) => String(error));
  await clock.advance(1_100);
  expect(await failed).toContain('still there 1 s after it was removed');
});
