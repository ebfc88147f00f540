import { expect, test } from 'vitest';
import { updateWorld, withWorld, type World } from '../../../test/support/service-world.ts';
import { isAlive, isEnded } from '../../domain/replica/replica-state.ts';
import { seededRandom, type Random } from '../../shared/random.ts';

/** `SVC_SIMULATION_SEEDS=1-2000` simulates these seeds instead of the few of a normal test run. */
function seeds(): readonly number[] {
  const [from = 1, to = 12] = (process.env['SVC_SIMULATION_SEEDS'] ?? '1-12').split('-').map(Number);
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

const pick = <Item>(random: Random, items: readonly Item[]): Item | undefined => items[Math.floor(random() * items.length)];

/** The next commits fail, before or after they take effect. */
function failNext(services: World['store']['services'], isMade: boolean): void {
  const commit = services.commit.bind(services);
  let left = 3;
  services.commit = async (...decided) => {
    left -= 1;
    if (left <= 0) services.commit = commit;
    if (isMade) await commit(...decided);
    throw new Error('The state database does not answer.');
  };
}

/** Possible faults of a service. Each name says what happens to a machine, a replica, the balancer or the control. */
const faults: Readonly<Record<string, (world: World, random: Random) => Promise<void> | void>> = {
  'a program is killed': ({ cloud: provider }, random) => pick(random, provider.living)?.killProgram(),
  'a machine is preempted': ({ cloud: provider }, random) => {
    const machine = pick(random, provider.living);
    if (machine !== undefined) provider.preempt(machine.id);
  },
  'an interruption is announced': ({ cloud: provider, clock }, random) => {
    const machine = pick(random, provider.living);
    if (machine !== undefined) provider.announce(machine.id, { kind: 'interruption', at: clock.now() + 120_000 });
  },
  'a machine falls silent': ({ cloud: provider }, random) => {
    const machine = pick(random, provider.living);
    const silence = { message: 'its node is not ready.', isTaken: false, isWidespread: random() < 0.3, isEnding: random() < 0.3 };
    if (machine !== undefined) provider.silence(machine.id, silence);
  },
  'silent machines report again': ({ cloud: provider }) => {
    for (const { id } of provider.living) provider.silence(id, undefined);
  },
  'a replica hangs': async (world, random) => {
    const replica = pick(random, await world.replicas());
    if (replica !== undefined) world.hung.add(replica.id);
  },
  'replicas answer again': ({ hung }) => hung.clear(),
  'a user ends a replica': async (world, random) => {
    const replica = pick(
      random,
      (await world.replicas()).filter(({ state }) => isAlive(state)),
    );
    if (replica !== undefined) await world.store.replicas.update(replica, { endRequestedAt: world.clock.now() });
  },
  'the balancer is away': (world, random) => {
    world.balancer = random() < 0.5 ? { connected: false } : {};
  },
  'decisions are not written': ({ store: { services } }) => failNext(services, false),
  'a decision is written and the database cannot say so': ({ store: { services } }) => failNext(services, true),
  'a user updates the service': (world, random) => updateWorld(world, { run: `program ${Math.floor(random() * 3)}` }),
  'the control is killed': async (world, random) => {
    world.crashAtCall(1 + Math.floor(random() * 9), random() < 0.5 ? 'before' : 'after');
    for (let step = 0; step < 50 && !world.isDead; step += 1) await world.clock.advance(200);
    world.cloud.conduct.onCall = () => undefined;
    await world.crash();
    await world.start();
  },
};

/** Invariants that hold in every state. */
async function assertSafe(world: World): Promise<void> {
  const replicas = await world.replicas();
  const machines = replicas.flatMap(({ machineId, state }) => (machineId === null || isEnded(state) ? [] : [machineId]));
  expect(new Set(machines).size).toBe(machines.length);
  const ended = new Set(replicas.filter(({ state }) => isEnded(state)).map(({ id }) => id));
  expect(world.sets.at(-1)?.filter((id) => ended.has(id)) ?? []).toEqual([]);
  expect(replicas.filter(({ state }) => isAlive(state)).length).toBeLessThanOrEqual(8);
}

test.for(seeds())('after random faults the service returns to its desired state without leaks (seed %d)', async (seed) => {
  const random = seededRandom(seed);
  const injected: string[] = [];
  await withWorld(
    async (world) => {
      Object.assign(world.cloud.conduct, { callMs: 40, bootMs: 2_000, jobOf: () => ({ setupMs: 300, readyAfterMs: 500 }) });
      try {
        for (let round = 0; round < 12; round += 1) {
          const [name = '', fault] = pick(random, Object.entries(faults)) ?? [];
          injected.push(name);
          await fault?.(world, random);
          await world.clock.advance(Math.floor(random() * 8_000));
          await assertSafe(world);
        }
        world.hung.clear();
        world.balancer = {};
        for (const { id } of world.cloud.living) {
          world.cloud.silence(id, undefined);
          for (const machine of world.cloud.living) if (machine.id === id) machine.notice = undefined;
        }
        await world.clock.advance(200_000);
        await world.untilReady(3, 900_000);
        await world.clock.advance(130_000);
        await world.untilReady(3, 900_000);
        const ready = (await world.replicas()).filter(({ state }) => state === 'READY');
        expect(new Set(world.cloud.living.map(({ id }) => id))).toEqual(new Set(ready.map(({ machineId }) => machineId)));
        expect((await world.replicas()).filter(({ state }) => !isEnded(state))).toHaveLength(3);
        const service = await world.store.services.get('chat');
        expect([service?.memory.update, ...ready.map(({ version }) => version)]).toEqual([undefined, ...ready.map(() => service?.version)]);
        expect(new Set(world.sets.at(-1))).toEqual(new Set(ready.map(({ id }) => id)));
      } catch (error) {
        throw new Error(`seed ${seed}: ${injected.join('; ')}`, { cause: error });
      }
    },
    { minReplicas: 3, maxReplicas: 3 },
    seed,
  );
});
