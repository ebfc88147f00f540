import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { aStubPlace, idOf } from '../../test/support/stub-place.ts';
import type { MachineStatus, Provider } from '../providers/provider.ts';
import { SvcError } from '../shared/errors.ts';
import { destroyMachine, giveBack, waitUntilRunning } from './machine.ts';

/** A place whose only machine is in one state after another. */
function aPlace(states: readonly MachineStatus[]): Provider {
  const left = [...states];
  return aStubPlace({
    inspect: (ids) => Promise.resolve(new Map(ids.map((id) => [id, left.shift() ?? { state: 'gone', reason: 'deleted' }]))),
  });
}

test('waits for a booting machine, and tells when it goes away instead', async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  const good = waitUntilRunning(aPlace([{ state: 'booting' }, { state: 'running' }]), idOf('m1'), clock, signal);
  await clock.advance(500);
  await good;
  const lost = aPlace([{ state: 'gone', reason: 'preempted' }]);
  await expect(waitUntilRunning(lost, idOf('m1'), clock, signal)).rejects.toThrow(
    'Machine m1 of stub went away while booting (preempted).',
  );
  const evicted = aPlace([{ state: 'gone', reason: 'preempted', message: 'Evicted: low on memory.' }]);
  await expect(waitUntilRunning(evicted, idOf('m1'), clock, signal)).rejects.toMatchObject({
    code: 'SVC_MACHINE_LOST',
    message: 'Machine m1 of stub went away while booting: Evicted: low on memory.',
  });
  const unpulled = aPlace([{ state: 'gone', reason: 'unknown', message: 'ErrImagePull: no route to the registry.', isHopeless: false }]);
  await expect(waitUntilRunning(unpulled, idOf('m1'), clock, signal)).rejects.toMatchObject({
    code: 'SVC_BOOT_FAILED',
    message: 'Machine m1 of stub did not start: ErrImagePull: no route to the registry.',
  });
});

test('a place that had no room for long, or lost a node, says nothing against the machine that was asked for', async () => {
  const full = aPlace([{ state: 'gone', reason: 'unknown', message: 'No node within 600 s: 0/1 nodes are available.', mayPass: true }]);
  await expect(waitUntilRunning(full, idOf('m1'), new FakeClock(), new AbortController().signal)).rejects.toMatchObject({
    code: 'SVC_MACHINE_LOST',
    message: 'Machine m1 of stub went away while booting: No node within 600 s: 0/1 nodes are available.',
  });
});

test('how long a machine waits for room is for its place to say, and booting is counted from then on', async () => {
  const clock = new FakeClock();
  let isQueued = true;
  const inspect: Provider['inspect'] = (ids) => Promise.resolve(new Map(ids.map((id) => [id, { state: 'booting', isQueued } as const])));
  const ended: string[] = [];
  const waiting = waitUntilRunning(aStubPlace({ inspect }), idOf('m1'), clock, new AbortController().signal, { limitMs: 600_000 });
  void waiting.catch((error: unknown) => ended.push(String(error)));
  await clock.advance(1_200_000);
  expect(ended).toEqual([]);
  isQueued = false;
  await clock.advance(599_000);
  expect(ended).toEqual([]);
  await clock.advance(2_000);
  expect(ended).toEqual(['SvcError: Machine m1 of stub did not come up within 10 minutes.']);
});

test('what keeps a machine from running is told shortly and, beside that, at its full length, each once', async () => {
  const clock = new FakeClock();
  const why = { message: 'The image a:1 cannot be pulled: not found.', detail: 'ErrImagePull: rpc error: a:1: not found.' } as const;
  const booting: MachineStatus = { state: 'booting', ...why };
  const place = aPlace([booting, booting, { state: 'gone', reason: 'unknown', ...why, detail: 'ImagePullBackOff.', isHopeless: true }]);
  const told: string[] = [];
  const tell = (text: string): Promise<void> => {
    told.push(text);
    return Promise.resolve();
  };
  const waiting = waitUntilRunning(place, idOf('m1'), clock, new AbortController().signal, { onMessage: tell, onDetail: tell });
  const failed = waiting.catch((error: unknown) => String(error));
  await clock.advance(1_000);
  expect(await failed).toContain('did not start: The image a:1 cannot be pulled: not found.');
  expect(told).toEqual([why.detail, why.message, 'ImagePullBackOff.']);
});

test('a machine is gone when the place says so, and one that stays is an error', async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  await destroyMachine(aPlace([]), idOf('m1'), clock, 1_000, signal);
  const stays = aPlace(Array.from({ length: 50 }, () => ({ state: 'running' }) as const));
  const failed = destroyMachine(stays, idOf('m1'), clock, 1_000, signal).catch((error: unknown) => String(error));
  await clock.advance(1_100);
  expect(await failed).toContain('still there 1 s after it was removed');
});

test('a machine that does not come up in time, or cannot be asked about for a minute, counts as lost', async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  const ended = (place: Provider) =>
    waitUntilRunning(place, idOf('m1'), clock, signal, { limitMs: 600_000 }).catch((error: unknown) => String(error));
  const slow = ended(aStubPlace({ inspect: (ids) => Promise.resolve(new Map(ids.map((id) => [id, { state: 'booting' } as const]))) }));
  const silent = ended(aStubPlace({ inspect: () => new Promise(() => undefined) }));
  const failing = ended(aStubPlace({ inspect: () => Promise.reject(new SvcError('SVC_PLACE_FAILED', 'no route')) }));
  await clock.advance(61_000);
  expect([await silent, await failing]).toEqual([
    'SvcError: Machine m1 of stub cannot be asked about (no answer).',
    'SvcError: Machine m1 of stub cannot be asked about (no route).',
  ]);
  await clock.advance(540_000);
  expect(await slow).toBe('SvcError: Machine m1 of stub did not come up within 10 minutes.');
});

test('a passing fault while a machine boots is no loss', async () => {
  const clock = new FakeClock();
  let calls = 0;
  const place = aStubPlace({
    inspect: (ids) => {
      calls += 1;
      if (calls < 5) return Promise.reject(new SvcError('SVC_MACHINE_LOST', 'connection reset'));
      return Promise.resolve(new Map(ids.map((id) => [id, { state: 'running' } as const])));
    },
  });
  const running = waitUntilRunning(place, idOf('m1'), clock, new AbortController().signal);
  await clock.advance(3_000);
  await expect(running).resolves.toBeUndefined();
});

test('what nobody wants is given back, by id or by key, also by a place that fails at first', async () => {
  const clock = new FakeClock();
  const destroyed: string[] = [];
  let failures = 2;
  const place = aStubPlace({
    list: (tags) => Promise.resolve([{ id: idOf(`of-${tags['svc-key']}`), tags }]),
    destroy: (id) => {
      failures -= 1;
      if (failures >= 0) return Promise.reject(new SvcError('SVC_PLACE_FAILED', 'busy'));
      return Promise.resolve(void destroyed.push(id));
    },
  });
  const { signal } = new AbortController();
  const done = Promise.all([giveBack(place, { id: idOf('m1') }, clock, signal), giveBack(place, { key: 'k' }, clock, signal)]);
  await clock.advance(10_000);
  await done;
  expect(destroyed.toSorted()).toEqual(['m1', 'of-k']);
});
