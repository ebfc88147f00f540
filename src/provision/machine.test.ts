import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { aStubProvider, idOf } from '../../test/support/stub-provider.ts';
import type { MachineStatus, Provider } from '../providers/provider.ts';
import { SvcError } from '../shared/errors.ts';
import { destroyMachine, releaseMachine, waitUntilRunning } from './machine.ts';

/** A provider whose only machine goes through the given states. */
function aProvider(states: readonly MachineStatus[]): Provider {
  const left = [...states];
  return aStubProvider({
    inspect: (ids) => Promise.resolve(new Map(ids.map((id) => [id, left.shift() ?? { state: 'gone', reason: 'deleted' }]))),
  });
}

test('waits for a booting machine, and reports when it ends instead', async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  const good = waitUntilRunning(aProvider([{ state: 'booting' }, { state: 'running' }]), idOf('m1'), clock, signal);
  await clock.advance(500);
  await good;
  const lost = aProvider([{ state: 'gone', reason: 'preempted' }]);
  await expect(waitUntilRunning(lost, idOf('m1'), clock, signal)).rejects.toThrow(
    'Machine m1 of stub went away while booting (preempted).',
  );
  const evicted = aProvider([{ state: 'gone', reason: 'preempted', message: 'Evicted: low on memory.' }]);
  await expect(waitUntilRunning(evicted, idOf('m1'), clock, signal)).rejects.toMatchObject({
    refusal: 'capacity',
    scope: 'zone',
    message: 'Machine m1 of stub went away while booting: Evicted: low on memory.',
  });
  const unpulled = aProvider([{ state: 'gone', reason: 'unknown', message: 'ErrImagePull: no route to the registry.', isHopeless: false }]);
  await expect(waitUntilRunning(unpulled, idOf('m1'), clock, signal)).rejects.toMatchObject({
    code: 'SVC_BOOT_FAILED',
    message: 'Machine m1 of stub did not start: ErrImagePull: no route to the registry.',
  });
});

test('a late refusal quotes the provider and has its cause', async () => {
  const refused = aProvider([
    { state: 'gone', reason: 'unknown', message: 'TooManyDisks: 20 of 20.', refusal: { kind: 'quota', scope: 'whole-region' } },
  ]);
  const waiting = waitUntilRunning(refused, idOf('m1'), new FakeClock(), new AbortController().signal);
  await expect(waiting).rejects.toMatchObject({
    refusal: 'quota',
    scope: 'whole-region',
    message: 'Machine m1 of stub went away while booting: TooManyDisks: 20 of 20.',
  });
});

test('a long lack of room or a lost node does not discredit the machine', async () => {
  const full = aProvider([{ state: 'gone', reason: 'unknown', message: 'No node within 600 s: 0/1 nodes are available.', mayPass: true }]);
  await expect(waitUntilRunning(full, idOf('m1'), new FakeClock(), new AbortController().signal)).rejects.toMatchObject({
    code: 'SVC_MACHINE_LOST',
    message: 'Machine m1 of stub went away while booting: No node within 600 s: 0/1 nodes are available.',
  });
});

test("the boot limit starts when the provider ends the machine's queueing", async () => {
  const clock = new FakeClock();
  let isQueued = true;
  const inspect: Provider['inspect'] = (ids) => Promise.resolve(new Map(ids.map((id) => [id, { state: 'booting', isQueued } as const])));
  const ended: string[] = [];
  const waiting = waitUntilRunning(aStubProvider({ inspect }), idOf('m1'), clock, new AbortController().signal, { limitMs: 600_000 });
  void waiting.catch((error: unknown) => ended.push(String(error)));
  await clock.advance(1_200_000);
  expect(ended).toEqual([]);
  isQueued = false;
  await clock.advance(599_000);
  expect(ended).toEqual([]);
  await clock.advance(2_000);
  expect(ended).toEqual(['SvcError: Machine m1 of stub did not come up within 10 minutes.']);
});

test('each boot message is reported once, in short and in full', async () => {
  const clock = new FakeClock();
  const why = { message: 'The image a:1 cannot be pulled: not found.', detail: 'ErrImagePull: rpc error: a:1: not found.' } as const;
  const booting: MachineStatus = { state: 'booting', ...why };
  const provider = aProvider([
    booting,
    booting,
    { state: 'gone', reason: 'unknown', ...why, detail: 'ImagePullBackOff.', isHopeless: true },
  ]);
  const reported: string[] = [];
  const report = (text: string): Promise<void> => {
    reported.push(text);
    return Promise.resolve();
  };
  const waiting = waitUntilRunning(provider, idOf('m1'), clock, new AbortController().signal, { onMessage: report, onDetail: report });
  const failed = waiting.catch((error: unknown) => String(error));
  await clock.advance(1_000);
  expect(await failed).toContain('did not start: The image a:1 cannot be pulled: not found.');
  expect(reported).toEqual([why.detail, why.message, 'ImagePullBackOff.']);
});

test('a machine is gone when the provider confirms it; otherwise an error follows', async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  await destroyMachine(aProvider([]), idOf('m1'), clock, 1_000, signal);
  const stays = aProvider(Array.from({ length: 50 }, () => ({ state: 'running' }) as const));
  const failed = destroyMachine(stays, idOf('m1'), clock, 1_000, signal).catch((error: unknown) => String(error));
  await clock.advance(1_100);
  expect(await failed).toContain('still there 1 s after it was removed');
});

test('a machine that boots too long or is unreachable for a minute is lost', async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  const ended = (provider: Provider) =>
    waitUntilRunning(provider, idOf('m1'), clock, signal, { limitMs: 600_000 }).catch((error: unknown) => String(error));
  const slow = ended(aStubProvider({ inspect: (ids) => Promise.resolve(new Map(ids.map((id) => [id, { state: 'booting' } as const]))) }));
  const silent = ended(aStubProvider({ inspect: () => new Promise(() => undefined) }));
  const failing = ended(aStubProvider({ inspect: () => Promise.reject(new SvcError('SVC_PLACE_FAILED', 'no route')) }));
  await clock.advance(61_000);
  expect([await silent, await failing]).toEqual([
    'SvcError: Machine m1 of stub cannot be asked about (no answer).',
    'SvcError: Machine m1 of stub cannot be asked about (no route).',
  ]);
  await clock.advance(540_000);
  expect(await slow).toBe('SvcError: Machine m1 of stub did not come up within 10 minutes.');
});

test('a transient error while a machine boots is no loss', async () => {
  const clock = new FakeClock();
  let calls = 0;
  const provider = aStubProvider({
    inspect: (ids) => {
      calls += 1;
      if (calls < 5) return Promise.reject(new SvcError('SVC_MACHINE_LOST', 'connection reset'));
      return Promise.resolve(new Map(ids.map((id) => [id, { state: 'running' } as const])));
    },
  });
  const running = waitUntilRunning(provider, idOf('m1'), clock, new AbortController().signal);
  await clock.advance(3_000);
  await expect(running).resolves.toBeUndefined();
});

test('releaseMachine terminates by id or by key and retries failures', async () => {
  const clock = new FakeClock();
  const destroyed: string[] = [];
  let failures = 2;
  const provider = aStubProvider({
    list: (tags) => Promise.resolve([{ id: idOf(`of-${tags['svc-key']}`), tags }]),
    destroy: (id) => {
      failures -= 1;
      if (failures >= 0) return Promise.reject(new SvcError('SVC_PLACE_FAILED', 'busy'));
      return Promise.resolve(void destroyed.push(id));
    },
  });
  const { signal } = new AbortController();
  const done = Promise.all([
    releaseMachine(provider, { id: idOf('m1') }, clock, signal),
    releaseMachine(provider, { key: 'k' }, clock, signal),
  ]);
  await clock.advance(10_000);
  await done;
  expect(destroyed.toSorted()).toEqual(['m1', 'of-k']);
});
