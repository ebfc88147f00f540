import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { anOffer, aService, aServiceSpec, aTask, aVersion } from './builders.ts';
import { FakeClock } from './fake-clock.ts';
import { placesOf } from './places.ts';
import type { ControllerHost } from '../../src/domain/controller-host.ts';
import type { ReplicaPolicy, Task } from '../../src/domain/task.ts';
import { FakePlace } from '../../src/providers/fake/fake-place.ts';
import { FakeProvider } from '../../src/providers/fake/index.ts';
import type { Offer } from '../../src/providers/provider.ts';
import { noFence } from '../../src/shared/fence.ts';
import { homePaths, servicePaths, type ServicePaths } from '../../src/shared/paths.ts';
import { seededRandom } from '../../src/shared/random.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { ReplicaRecord } from '../../src/store/records.ts';
import type { Store } from '../../src/store/store.ts';
import type { BalancerListeners, BalancerView } from '../../src/controller/service/balancer-client.ts';
import { runService } from '../../src/controller/service/run-service.ts';

const offer = anOffer({ provider: 'fake', region: 'r1', instanceType: 'small', cpus: 4, memoryGb: 16, hourlyUsd: 1 });

/** Pauses for real files in each step of a wait. */
const turnsForFiles = 10;

/** A store in which a process that was killed neither reads nor writes any more. */
function untilDead(store: Store, killed: AbortSignal): Store {
  const guarded = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return (...args: readonly unknown[]): unknown =>
          killed.aborted ? new Promise(() => undefined) : Reflect.apply(value, target, args);
      },
    });
  const { services, replicas, events, clusters } = store;
  return {
    ...store,
    services: guarded(services),
    replicas: guarded(replicas),
    events: guarded(events),
    clusters: guarded(clusters),
  };
}

/** A service with its own database, over a place in memory, in virtual time. Its control can be killed and started like a process. */
export class World {
  readonly clock = new FakeClock();
  readonly place: FakePlace;
  readonly store: Store;
  /** Every set that a balancer was sent: the ids of its replicas. */
  readonly sets: (readonly number[])[] = [];
  /** What the balancer says; otherwise it is there and has nothing to do. */
  balancer: Partial<BalancerView> = {};
  /** The machine the control runs on, where that was chosen for it. */
  host: ControllerHost | undefined;
  readonly files: ServicePaths;
  /** When the files of the service are all there; they are, unless a test says otherwise. */
  filesThere: Promise<void> | undefined;
  #stop = new AbortController();
  #listeners: BalancerListeners | undefined;

  constructor(store: Store, home: string, seed: number, clock: FakeClock, offers: readonly Offer[]) {
    this.clock = clock;
    this.store = store;
    this.files = servicePaths(homePaths(home, 0), '0a1b2c3d');
    this.place = new FakePlace(clock, seededRandom(seed), offers);
  }

  async start(): Promise<void> {
    this.#stop = new AbortController();
    const provider = new FakeProvider(this.place);
    let isStarted = false;
    const starting = runService(
      {
        name: 'chat',
        key: '0a1b2c3d',
        host: this.host,
        store: untilDead(this.store, this.#stop.signal),
        clock: this.clock,
        log: pino({ level: 'silent' }),
        files: this.files,
        filesThere: this.filesThere,
        fence: noFence,
        places: placesOf(provider),
        probe: async (address) => ({ passed: address.kind === 'tcp' && this.place.isServing(address.host), detail: '/ answered 503' }),
        openBalancer: (listeners) => {
          this.#listeners = listeners;
          let reports = 0;
          const said = (): Partial<BalancerView> => this.balancer;
          return {
            send: ({ replicas }) => void this.sets.push(replicas.map(({ id }) => id)),
            applied: async () => true,
            get view() {
              reports += 1;
              return { connected: true, inFlight: {}, queued: 0, hellos: 1, reports, ...said() };
            },
          };
        },
      },
      this.#stop,
    );
    void starting.then(() => (isStarted = true));
    await this.clock.advanceUntil(() => isStarted, 10_000, 10);
  }

  /** As `kill -9` of the process: nothing is finished, nothing is written any more. */
  async crash(): Promise<void> {
    this.#stop.abort();
    await this.clock.settle();
  }

  /** Kills it in the middle of its so-manieth call of a place from now on: before that has its effect, or after it and before the reply. */
  crashAtCall(number: number, when: 'before' | 'after'): void {
    let calls = 0;
    const stop = this.#stop;
    this.place.conduct.onCall = (now) => {
      if (now === when && (calls += 1) === number) stop.abort();
    };
  }

  get isDead(): boolean {
    return this.#stop.signal.aborted;
  }

  /** The history of a replica: causes and messages. */
  async told(replicaId: number): Promise<readonly (readonly [cause: string, message: string])[]> {
    const events = await this.store.events.list({ subject: 'chat' });
    return events.filter((event) => event.replicaId === replicaId).map(({ cause, message }) => [cause, message]);
  }

  arrivals(count: number): void {
    this.#listeners?.arrivals(count, this.balancer.queued ?? 0);
  }

  replicas(): Promise<readonly ReplicaRecord[]> {
    return this.store.replicas.list('chat');
  }

  async states(): Promise<readonly string[]> {
    return (await this.replicas()).map(({ id, state }) => `${id} ${state}`);
  }

  /** Lets virtual time pass until so many replicas are ready. */
  async untilReady(count: number, limitMs = 600_000): Promise<number> {
    const startedAt = this.clock.now();
    while ((await this.replicas()).filter(({ state }) => state === 'READY').length !== count) {
      if (this.clock.now() - startedAt > limitMs) throw new Error(`not ${count} ready: ${(await this.states()).join(', ')}`);
      await this.clock.advance(50);
      // A launch reads and writes real files: other threads do that, and need their time however little of the virtual one is to pass.
      for (let turn = 0; turn < turnsForFiles; turn += 1) await this.clock.settle();
    }
    return this.clock.now() - startedAt;
  }
}

export async function withWorld(
  use: (world: World) => Promise<void>,
  policy: Partial<ReplicaPolicy> = {},
  seed = 1,
  offers: readonly Offer[] = [offer],
  change: Partial<Task> = {},
): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'svc-sim-'));
  const clock = new FakeClock();
  const store = await openStore({ path: join(home, 'state.db'), clock });
  try {
    const spec = aServiceSpec();
    const task = aTask({ service: { ...spec, replicaPolicy: { ...spec.replicaPolicy, ...policy } }, ...change });
    const event = { at: 0, subject: 'chat', subjectKey: '0a1b2c3d', replicaId: null, from: null, to: null, cause: 'up', message: '' };
    await store.services.add(aService({ revision: 0 }), aVersion({ task }), event, 1);
    const world = new World(store, home, seed, clock, offers);
    await world.start();
    await use(world);
    await world.crash();
  } finally {
    await store.close();
    rmSync(home, { recursive: true, force: true });
  }
}
