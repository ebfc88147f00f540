import { expect, test } from 'vitest';
import { withWorld, type World } from '../../../test/support/service-world.ts';
import type { FakeMachine } from '../../providers/fake/fake-machine.ts';
import type { MachineSilence } from '../../providers/provider.ts';
import { SvcError } from '../../shared/errors.ts';

const two = { minReplicas: 2, maxReplicas: 2 };
const silence: MachineSilence = { message: 'The node n1 is not ready.', isTaken: false, isWidespread: false, isEnding: false };

function machineOf(world: World, index: number): FakeMachine {
  const machine = [...world.cloud.machines.values()][index];
  if (machine === undefined) throw new Error(`no machine ${index}`);
  return machine;
}

/** Makes a machine silent from now on. `isDead`: its replica does not answer either. */
function silenced(world: World, index: number, change: Partial<MachineSilence> = {}, isDead = false): FakeMachine {
  const machine = machineOf(world, index);
  machine.isCutOff = isDead;
  world.cloud.silence(machine.id, { ...silence, ...change });
  return machine;
}

/**
 * Advances virtual time until the replicas are in these states. File operations consume much of it on a busy machine.
 */
async function untilStates(world: World, states: readonly string[], limitMs = 120_000): Promise<void> {
  const startedAt = world.clock.now();
  while ((await world.states()).join() !== states.join()) {
    if (world.clock.now() - startedAt > limitMs) throw new Error(`not ${states.join()}, but ${(await world.states()).join()}`);
    await world.clock.advance(250);
    for (let turn = 0; turn < 5; turn += 1) await world.clock.settle();
  }
}

const serving = (world: World): readonly number[] => (world.sets.at(-1) ?? []).toSorted((a, b) => a - b);

test('a silent machine whose replica answers is kept indefinitely', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    silenced(world, 0);
    silenced(world, 1, { isWidespread: true });
    await world.clock.advance(1_200_000);
    expect(await world.states()).toEqual(['1 READY', '2 READY']);
    expect([world.cloud.machines.size, serving(world)]).toEqual([2, [1, 2]]);
    expect((await world.historyOf(1)).filter(([cause]) => cause === 'machine-silent')).toEqual([
      ['machine-silent', 'Its machine fake-1 at fake/r1 is silent: The node n1 is not ready.'],
    ]);
    world.cloud.silence(machineOf(world, 0).id, undefined);
    const hasRecovered = async (): Promise<boolean> => (await world.historyOf(1)).some(([cause]) => cause === 'machine-responsive');
    while (!(await hasRecovered())) await world.clock.advance(250);
    expect(await world.states()).toEqual(['1 READY', '2 READY']);
  }, two);
});

test('a silent machine without answers is removed when its replacement is ready', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    await world.clock.advance(10_000);
    Object.assign(world.cloud.conduct, { bootMs: 30_000, jobOf: () => ({ readyAfterMs: 30_000 }) });
    const lost = silenced(world, 0, {}, true);
    await untilStates(world, ['1 NOT_READY', '2 READY', '3 PROVISIONING']);
    expect([lost.goneReason, serving(world)]).toEqual([undefined, [2]]);
    await untilStates(world, ['1 NOT_READY', '2 READY', '3 STARTING']);
    expect(lost.goneReason).toBeUndefined();
    await untilStates(world, ['1 FAILED', '2 READY', '3 READY']);
    expect(lost.goneReason).toBe('deleted');
    expect((await world.replicas())[0]).toMatchObject({ endCause: 'machine-lost', reason: expect.stringContaining('is silent') });
  }, two);
});

test('a silent machine that the provider reclaims counts as preempted', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    silenced(world, 0, { isTaken: true }, true);
    await untilStates(world, ['1 PREEMPTED', '2 READY', '3 READY']);
    expect((await world.replicas())[0]?.endCause).toBe('preempted');
  }, two);
});

test('widespread silence removes no machine, but replacements are launched', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    const lost = silenced(world, 0, { isWidespread: true }, true);
    await untilStates(world, ['1 NOT_READY', '2 READY', '3 READY']);
    // Longer than the probes of a replica may fail.
    await world.clock.advance(600_000);
    expect(await world.states()).toEqual(['1 NOT_READY', '2 READY', '3 READY']);
    expect(lost.goneReason).toBeUndefined();
    world.cloud.silence(lost.id, silence);
    await untilStates(world, ['1 FAILED', '2 READY', '3 READY']);
    expect(lost.goneReason).toBe('deleted');
  }, two);
});

test('a machine that recovers keeps its replica, and the surplus replica ends', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    const back = silenced(world, 0, { isWidespread: true }, true);
    await untilStates(world, ['1 NOT_READY', '2 READY', '3 READY']);
    back.isCutOff = false;
    world.cloud.silence(back.id, undefined);
    await untilStates(world, ['1 READY', '2 READY', '3 TERMINATED']);
    expect([back.goneReason, world.cloud.living.length]).toEqual([undefined, 2]);
  }, two);
});

test('a machine back without its program does not end the launching replacement', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    world.cloud.conduct.bootMs = 60_000;
    const back = silenced(world, 0, {}, true);
    await untilStates(world, ['1 NOT_READY', '2 READY', '3 PROVISIONING']);
    world.cloud.silence(back.id, undefined);
    await world.clock.advance(20_000);
    expect(await world.states()).toEqual(['1 NOT_READY', '2 READY', '3 PROVISIONING']);
    await untilStates(world, ['1 FAILED', '2 READY', '3 READY']);
    expect(back.goneReason).toBe('deleted');
  }, two);
});

test('an answering replica on an ending machine serves until its replacement does, then drains', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    world.cloud.conduct.bootMs = 300_000;
    const ending = silenced(world, 0, { isEnding: true });
    // Longer than the assumed time of an interruption notice without one.
    await world.clock.advance(250_000);
    expect(await world.states()).toEqual(['1 READY', '2 READY', '3 PROVISIONING']);
    expect([serving(world), ending.goneReason]).toEqual([[1, 2], undefined]);
    world.balancer = { inFlight: { 1: 1 } };
    await untilStates(world, ['1 SHUTTING_DOWN', '2 READY', '3 READY']);
    expect([serving(world), ending.goneReason]).toEqual([[1, 2, 3], undefined]);
    world.balancer = {};
    await untilStates(world, ['1 PREEMPTED', '2 READY', '3 READY']);
    expect(ending.goneReason).toBe('deleted');
  }, two);
});

test('restarts during silence end no replica and launch none twice', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    silenced(world, 0);
    world.cloud.conduct.bootMs = 60_000;
    const lost = silenced(world, 1, {}, true);
    await untilStates(world, ['1 READY', '2 NOT_READY', '3 PROVISIONING']);
    for (let restart = 0; restart < 5; restart += 1) {
      await world.crash();
      await world.start();
      await world.clock.advance(3_000);
      expect(await world.states()).toEqual(['1 READY', '2 NOT_READY', '3 PROVISIONING']);
    }
    await untilStates(world, ['1 READY', '2 FAILED', '3 READY']);
    expect([lost.goneReason, world.cloud.machines.size]).toEqual(['deleted', 3]);
  }, two);
});

test('after a restart, an unanswered replica is not surplus until its provider answers', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    const lost = silenced(world, 0, { isWidespread: true }, true);
    await untilStates(world, ['1 NOT_READY', '2 READY', '3 READY']);
    await world.crash();
    world.cloud.conduct.onCall = () => {
      throw new Error('The provider does not answer.');
    };
    await world.start();
    await world.clock.advance(300_000);
    expect(await world.states()).toEqual(['1 NOT_READY', '2 READY', '3 READY']);
    world.cloud.conduct.onCall = () => undefined;
    lost.isCutOff = false;
    world.cloud.silence(lost.id, undefined);
    await untilStates(world, ['1 READY', '2 READY', '3 TERMINATED']);
  }, two);
});

test('after a restart, a hung replica leaves the set although its provider denies calls', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    await world.crash();
    world.cloud.conduct.onCall = () => {
      throw new SvcError('SVC_DENIED', 'You may not.');
    };
    machineOf(world, 0).isCutOff = true;
    await world.start();
    await untilStates(world, ['1 NOT_READY', '2 READY']);
    expect(serving(world)).toEqual([2]);
    world.cloud.conduct.onCall = () => undefined;
    machineOf(world, 0).isCutOff = false;
    await untilStates(world, ['1 READY', '2 READY']);
    expect(world.cloud.machines.size).toBe(2);
  }, two);
});

test('a surplus replica of a silent machine ends only when the machine reports again', async () => {
  const policy = { minReplicas: 0, maxReplicas: 1, targetQpsPerReplica: 1, upscaleDelaySeconds: 20, downscaleDelaySeconds: 20 };
  await withWorld(async (world) => {
    world.arrivals(1);
    await world.untilReady(1);
    const machine = silenced(world, 0);
    await world.clock.advance(600_000);
    expect([await world.states(), machine.goneReason]).toEqual([['1 READY'], undefined]);
    world.cloud.silence(machine.id, undefined);
    await untilStates(world, ['1 TERMINATED']);
    expect(machine.goneReason).toBe('deleted');
  }, policy);
});

test('scaling down ends a replica whose machine reports, not a silent one', async () => {
  const policy = { minReplicas: 1, maxReplicas: 2, targetQpsPerReplica: 1, upscaleDelaySeconds: 20, downscaleDelaySeconds: 20 };
  await withWorld(async (world) => {
    await world.untilReady(1);
    world.arrivals(120);
    await world.untilReady(2);
    const machine = silenced(world, 1);
    await untilStates(world, ['1 TERMINATED', '2 READY']);
    expect([serving(world), machine.goneReason]).toEqual([[2], undefined]);
  }, policy);
});

test('a machine silent during boot gets a replacement; the first one up serves', async () => {
  await withWorld(async (world) => {
    world.cloud.conduct.bootMs = 60_000;
    await untilStates(world, ['1 PROVISIONING', '2 PROVISIONING']);
    while (world.cloud.machines.size < 2) await world.clock.advance(100);
    silenced(world, 0);
    world.cloud.conduct.bootMs = 600_000;
    await untilStates(world, ['1 PROVISIONING', '2 PROVISIONING', '3 PROVISIONING']);
    world.cloud.silence(machineOf(world, 0).id, undefined);
    await untilStates(world, ['1 READY', '2 READY', '3 TERMINATED']);
    expect(world.cloud.living.length).toBe(2);
  }, two);
});
