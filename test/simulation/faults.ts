import type { Requests } from './requests.ts';
import { pick } from './scenario.ts';
import { updateWorld, type World } from '../support/service-world.ts';
import { pauseUpdate } from '../../src/controller/deploy/pause-update.ts';
import { isAlive } from '../../src/domain/replica/replica-state.ts';
import { ProviderRefusal } from '../../src/providers/provider-refusal.ts';
import { SvcError } from '../../src/shared/errors.ts';
import type { Random } from '../../src/shared/random.ts';

type Act = (world: World, random: Random, requests: Requests) => Promise<void> | void;

const machineOf = ({ cloud }: World, random: Random) => (cloud.living.length === 0 ? undefined : pick(random, cloud.living));

/** Worlds whose store fails now. */
export const failingStores = new WeakSet<World>();

/** Kills the control in one of its next awaits, then starts it again. */
async function killControl(world: World, random: Random): Promise<void> {
  const when = random() < 0.5 ? 'before' : 'after';
  if (random() < 0.5) world.crashAtCall(1 + Math.floor(random() * 9), when);
  else world.crashAtStoreCall(1 + Math.floor(random() * 60), when);
  for (let step = 0; step < 20 && !world.isDead; step += 1) await world.clock.advance(500);
  world.cloud.conduct.onCall = () => undefined;
  world.onStoreCall = () => undefined;
  await world.crash();
  await world.start();
}

/** Each of the next three commits fails, or the control is killed in it: before or after its effect. */
async function failThreeCommits(world: World, random: Random): Promise<void> {
  for (let commit = 0; commit < 3; commit += 1) {
    const when = random() < 0.5 ? 'before' : 'after';
    const isKill = random() < 0.5;
    const fails = { left: 1 };
    failingStores.add(world);
    world.onStoreCall = (now, call) => {
      if (fails.left === 0 || call !== 'commit' || now !== when) return;
      fails.left = 0;
      if (isKill) world.kill();
      else throw new Error('The state database does not answer.');
    };
    for (let step = 0; step < 20 && fails.left > 0; step += 1) await world.clock.advance(500);
    world.onStoreCall = () => undefined;
    if (!world.isDead) continue;
    await world.crash();
    await world.start();
  }
  failingStores.delete(world);
}

async function holdUpdate({ store, clock }: World, paused: boolean): Promise<void> {
  const find = async () => {
    const service = await store.services.get('chat');
    if (service === undefined) throw new Error('the service has no record');
    return service;
  };
  try {
    await pauseUpdate({ store, clock }, find, paused);
  } catch (error) {
    if (!(error instanceof SvcError && error.code === 'SVC_NO_UPDATE')) throw error;
  }
}

/** Acts of a run by name: faults of the cloud, of the control and of the store, and the acts of users. */
export const acts: Readonly<Record<string, Act>> = {
  'spot capacity is gone': ({ cloud }) => {
    cloud.conduct.answerTo = ({ spot }) => (spot ? { refusal: new ProviderRefusal('capacity', 'zone', 'fake: no machine is left.') } : {});
  },
  'no machine is left': ({ cloud }) => void (cloud.conduct.refuseWith = 'capacity'),
  'the provider throttles': ({ cloud }, random) => {
    cloud.conduct.onCall = (when) => {
      if (when === 'before' && random() < 0.3) throw new SvcError('SVC_THROTTLED', 'fake: too many calls.');
    };
  },
  'replies get lost': ({ cloud }) => void (cloud.conduct.lostReplies = 0.3),
  'machines are refused after they were accepted': ({ cloud }, random) => {
    cloud.conduct.bootOf = () => (random() < 0.5 ? { refused: { kind: 'capacity', scope: 'zone', message: 'fake: no capacity.' } } : {});
  },
  'machines start slowly': ({ cloud }) => void (cloud.conduct.bootMs = 30_000),
  'a machine is preempted': (world, random) => {
    const machine = machineOf(world, random);
    if (machine !== undefined) world.cloud.preempt(machine.id);
  },
  'a machine is preempted with notice': (world, random) => {
    const { cloud, clock } = world;
    const machine = machineOf(world, random);
    if (machine === undefined) return;
    cloud.announce(machine.id, { kind: 'interruption', at: clock.now() + 30_000 });
    // Some notices come to nothing.
    if (random() < 0.7) clock.after(30_000, () => cloud.preempt(machine.id));
  },
  'a machine falls silent': (world, random) => {
    const machine = machineOf(world, random);
    const silence = { message: 'its node is not ready.', isTaken: false, isWidespread: random() < 0.3, isEnding: random() < 0.3 };
    if (machine !== undefined) world.cloud.silence(machine.id, silence);
  },
  'silent machines report again': (world) => endSilence(world),
  'a replica hangs': async (world, random) => {
    const replicas = await world.replicas();
    if (replicas.length > 0) world.hung.add(pick(random, replicas).id);
  },
  'replicas answer again': ({ hung }) => hung.clear(),
  'the wall clock jumps': ({ clock }, random) => clock.jumpWallTime(Math.floor((random() - 0.5) * 1_200_000)),
  'a program is killed': (world, random) => machineOf(world, random)?.killProgram(),
  'the store fails': (world, random) => {
    failingStores.add(world);
    world.onStoreCall = (when) => {
      if (when === (random() < 0.5 ? 'before' : 'after') && random() < 0.2) throw new Error('The state database does not answer.');
    };
  },
  'the faults end': (world, _random, requests) => endFaults(world, requests),
  'the control is killed': killControl,
  'three commits in a row fail': failThreeCommits,
  'the balancer is away': (world, random, requests) => {
    requests.break();
    world.balancer = random() < 0.5 ? { connected: false } : {};
  },
  'requests arrive': (world, random, requests) => {
    world.arrivals(Math.floor(random() * 300));
    requests.arrive(random);
  },
  'a user ends a replica': async (world, random) => {
    const alive = (await world.replicas()).filter(({ state }) => isAlive(state));
    if (alive.length > 0) await world.store.replicas.update(pick(random, alive), { endRequestedAt: world.clock.now() });
  },
  'a user updates the service': (world, random) => updateWorld(world, { run: `program ${Math.floor(random() * 4)}` }),
  'a user goes back to version 1': async (world) => {
    const first = await world.store.services.version('chat', 1);
    if (first !== undefined) await updateWorld(world, first.task);
  },
  'a user pauses the update': (world) => holdUpdate(world, true),
  'a user resumes the update': (world) => holdUpdate(world, false),
};

function endSilence({ cloud }: World): void {
  for (const { id, silence } of cloud.living) if (silence !== undefined) cloud.silence(id, undefined);
}

/** Ends every fault that lasts. */
function endFaults(world: World, requests: Requests): void {
  requests.break();
  world.balancer = {};
  world.hung.clear();
  endSilence(world);
  for (const machine of world.cloud.living) machine.notice = undefined;
  failingStores.delete(world);
  world.onStoreCall = () => undefined;
  Object.assign(world.cloud.conduct, {
    answerTo: () => ({}),
    bootOf: () => ({}),
    onCall: () => undefined,
    refuseWith: undefined,
    lostReplies: 0,
    bootMs: 1_000,
  });
}

/** Ends every fault, and lets an update that a user paused go on. */
export async function endAll(world: World, requests: Requests): Promise<void> {
  endFaults(world, requests);
  await holdUpdate(world, false);
}
