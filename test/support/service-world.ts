import { mkdtempSync, rmSync } from 'node:fs';
import { devNull, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { anOffer, aService, aServiceSpec, aTask, aVersion } from './builders.ts';
import { FakeClock } from './fake-clock.ts';
import { memoryStore } from './memory-store.ts';
import { providersOf } from './providers.ts';
import type { RemoteControllerInfo } from '../../src/domain/remote-controller-info.ts';
import type { EngineAnswer } from '../../src/controller/service/engine-request.ts';
import type { EngineMetrics } from '../../src/domain/engine-metrics.ts';
import type { BalancerReplica, SuspectReason } from '../../src/domain/balancer-link.ts';
import type { ReplicaPolicy, Task, UpdateMode } from '../../src/domain/task.ts';
import { FakeCloud } from '../../src/providers/fake/fake-cloud.ts';
import { FakeProvider } from '../../src/providers/fake/index.ts';
import type { Offer } from '../../src/providers/provider.ts';
import { noFence } from '../../src/shared/fence.ts';
import { homePaths, servicePaths, type ServicePaths } from '../../src/shared/paths.ts';
import { seededRandom, type Random } from '../../src/shared/random.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { ReplicaRecord } from '../../src/domain/records.ts';
import { compareAndSwap } from '../../src/store/compare-and-swap.ts';
import type { Store } from '../../src/store/store.ts';
import type { BalancerListeners, BalancerView } from '../../src/controller/service/balancer-client.ts';
import { runService } from '../../src/controller/service/run-service.ts';

const offer = anOffer({ provider: 'fake', region: 'r1', instanceType: 'small', cpus: 4, memoryGb: 16, hourlyUsd: 1 });

/** Pauses for real files in each step of a wait. */
const turnsForFiles = 10;

/** A store whose calls never return after the kill of its process. Each call first takes `delay`; `onCall` may kill. */
function untilDead(store: Store, killed: AbortSignal, delay: () => Promise<void> | undefined, onCall: World['onStoreCall']): Store {
  const guarded = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return (...args: readonly unknown[]): unknown => {
          const never = new Promise(() => undefined);
          const call = (): unknown => {
            if (killed.aborted) return never;
            onCall('before', String(name));
            if (killed.aborted) return never;
            const result: unknown = Reflect.apply(value, target, args);
            if (!(result instanceof Promise)) return result;
            return result.then((found: unknown) => {
              onCall('after', String(name));
              return killed.aborted ? never : found;
            });
          };
          return delay()?.then(call) ?? call();
        };
      },
    });
  const { services, replicas, events, clusters, zones } = store;
  return {
    ...store,
    services: guarded(services),
    replicas: guarded(replicas),
    events: guarded(events),
    clusters: guarded(clusters),
    zones: guarded(zones),
  };
}

/**
 * A service with a new database, over an in-memory provider, in virtual time. A test can kill and start its control
 * loop like a process.
 */
export class World {
  readonly clock = new FakeClock();
  readonly cloud: FakeCloud;
  readonly store: Store;
  /** Every endpoint set sent to a balancer: the ids of its replicas that are not lost. */
  readonly sets: (readonly number[])[] = [];
  /** The last endpoint set sent to a balancer. */
  endpoints: readonly BalancerReplica[] = [];
  /** Called before and after each call of the store takes effect. What it throws, the caller gets. */
  onStoreCall: (when: 'before' | 'after', call: string) => void = () => undefined;
  /** Overrides of the balancer's view; by default it runs and is idle. */
  balancer: Partial<BalancerView> = {};
  /** The remote machine of the control loop, when the test chose one. */
  host: RemoteControllerInfo | undefined;
  readonly files: ServicePaths;
  /** Resolves when all files of the service are present; by default they are. */
  filesThere: Promise<void> | undefined;
  /** Ids of replicas whose probes time out. */
  readonly hung = new Set<number>();
  /** Metrics of the engine in each replica; undefined: they are missing. */
  engine: EngineMetrics | undefined;
  /** Paths that engines were told to sleep or wake up with, and what they answer after `engineMs`. */
  readonly told: string[] = [];
  engineMs = 0;
  answerOf = (path: string): EngineAnswer => ({ passed: true, isRefusal: false, detail: `${path} answered 200` });
  /** Duration of each call of the store. */
  storeMs = 0;
  /** Reports that the balancer sends when its link opens. */
  whenLinked: (listeners: BalancerListeners) => void = () => undefined;
  #stop = new AbortController();
  readonly #jitter: Random;
  #listeners: BalancerListeners | undefined;

  constructor(store: Store, files: ServicePaths, seed: number, clock: FakeClock, offers: readonly Offer[]) {
    this.clock = clock;
    this.store = store;
    this.files = files;
    this.cloud = new FakeCloud(clock, seededRandom(seed), offers);
    this.#jitter = seededRandom(seed);
  }

  async start(): Promise<void> {
    this.#stop = new AbortController();
    const provider = new FakeProvider(this.cloud);
    let isStarted = false;
    let reports = 0;
    const currentView = (): Partial<BalancerView> => this.balancer;
    const starting = runService(
      {
        name: 'chat',
        key: '0a1b2c3d',
        controllerHost: this.host,
        store: untilDead(
          this.store,
          this.#stop.signal,
          () => (this.storeMs > 0 ? this.clock.sleep(this.storeMs) : undefined),
          (when, call) => this.onStoreCall(when, call),
        ),
        clock: this.clock,
        log: pino({ level: 'silent' }),
        files: this.files,
        filesRestored: this.filesThere,
        fence: noFence,
        providers: providersOf(provider),
        random: this.#jitter,
        probe: async (address, _service, signal) => {
          const asked =
            this.hung.size === 0
              ? undefined
              : (await this.replicas()).find((one) => JSON.stringify(one.address) === JSON.stringify(address));
          if (asked !== undefined && this.hung.has(asked.id)) {
            await this.clock.sleep(15_000, signal);
            return { passed: false, detail: '/ did not answer within 15 s', isUnanswered: true };
          }
          return { passed: address.kind === 'tcp' && this.cloud.isServing(address.host), detail: '/ answered 503' };
        },
        measure: async () => this.engine,
        tellEngine: async (_address, path, signal) => {
          this.told.push(path);
          await this.clock.sleep(this.engineMs, signal);
          return this.answerOf(path);
        },
        balancer: {
          send: ({ replicas }) => {
            this.endpoints = replicas;
            this.sets.push(replicas.flatMap(({ id, lost }) => (lost === undefined ? [id] : [])));
          },
          applied: async () => true,
          get view() {
            reports += 1;
            return { connected: true, inFlight: {}, queued: 0, outcomes: {}, broken: {}, hellos: 1, reports, ...currentView() };
          },
          open: (listeners) => {
            this.#listeners = listeners;
            this.whenLinked(listeners);
          },
        },
      },
      this.#stop,
    );
    void starting.then(() => (isStarted = true));
    await this.clock.advanceUntil(() => isStarted, 10_000, 10);
  }

  /** As `crash`, from within a call. */
  kill(): void {
    this.#stop.abort();
  }

  /** Simulates `kill -9` of the process: nothing is finished, nothing is written any more. */
  async crash(): Promise<void> {
    this.#stop.abort();
    await this.clock.settle();
  }

  /**
   * Kills the process in its n-th provider call from now: before the call has its effect, or after the effect and
   * before the reply.
   */
  crashAtCall(number: number, when: 'before' | 'after'): void {
    let calls = 0;
    const stop = this.#stop;
    this.cloud.conduct.onCall = (now) => {
      if (now === when && (calls += 1) === number) stop.abort();
    };
  }

  /** The same in the n-th call of the store. */
  crashAtStoreCall(number: number, when: 'before' | 'after'): void {
    let calls = 0;
    const stop = this.#stop;
    this.onStoreCall = (now) => {
      if (now === when && (calls += 1) === number) stop.abort();
    };
  }

  get isDead(): boolean {
    return this.#stop.signal.aborted;
  }

  /** The history of a replica: causes and messages. */
  async historyOf(replicaId: number): Promise<readonly (readonly [cause: string, message: string])[]> {
    const events = await this.store.events.list({ subject: 'chat' });
    return events.filter((event) => event.replicaId === replicaId).map(({ cause, message }) => [cause, message]);
  }

  arrivals(count: number): void {
    this.#listeners?.arrivals(count, this.balancer.queued ?? 0);
  }

  suspect(replicaId: number, reason: SuspectReason): void {
    this.#listeners?.suspect(replicaId, reason);
  }

  tlsChanged(problem: string | null): void {
    this.#listeners?.tlsChanged(problem);
  }

  replicas(): Promise<readonly ReplicaRecord[]> {
    return this.store.replicas.list('chat');
  }

  async states(): Promise<readonly string[]> {
    return (await this.replicas()).map(({ id, state }) => `${id} ${state}`);
  }

  /** Advances virtual time until this many replicas are ready. */
  untilReady(count: number, limitMs = 600_000): Promise<number> {
    const isReady = (states: readonly string[]): boolean => states.filter((state) => state.endsWith(' READY')).length === count;
    return this.#until(isReady, `${count} ready`, limitMs);
  }

  /** Advances virtual time until the replicas have these states. */
  untilStates(states: readonly string[], limitMs: number): Promise<number> {
    return this.#until((found) => found.join() === states.join(), states.join(', '), limitMs);
  }

  async #until(isReached: (states: readonly string[]) => boolean, expected: string, limitMs: number): Promise<number> {
    const startedAt = this.clock.now();
    while (!isReached(await this.states())) {
      if (this.clock.now() - startedAt > limitMs) throw new Error(`not ${expected}: ${(await this.states()).join(', ')}`);
      await this.clock.advance(50);
      // A launch reads and writes real files in other threads, which need real time even when little virtual time
      // passes.
      for (let turn = 0; turn < turnsForFiles; turn += 1) await this.clock.settle();
    }
    return this.clock.now() - startedAt;
  }
}

/** Adds a version whose task has this change, as `svc serve update` does. */
export async function updateWorld({ store, clock }: World, change: Partial<Task>, chosen?: UpdateMode): Promise<void> {
  await compareAndSwap(
    () => store.services.get('chat'),
    async (service) => {
      const current = await store.services.version('chat', service.version);
      const version = service.version + 1;
      const task = { ...(current?.task ?? aTask()), ...change, filesVersion: 1 };
      const mode = chosen ?? task.service?.update.mode ?? 'rolling';
      const memory = { ...service.memory, failures: [], gaveUp: false, update: { from: service.version, at: clock.now(), mode } };
      const event = { at: 0, subject: 'chat', subjectKey: '0a1b2c3d', replicaId: null, from: null, to: null, cause: 'update', message: '' };
      return store.services.addVersion(service, { version, memory }, aVersion({ version, task }), event);
    },
  );
}

/** Files of a service that keeps no log: work with real files takes more time than all else in a simulated run. */
function withoutLogs(files: ServicePaths, emptyDir: string): ServicePaths {
  return { ...files, replicasDir: emptyDir, provisionLog: () => devNull, jobLog: () => devNull };
}

/** `records`: `on disk` in SQLite, with logs, or `in memory` without any file. */
export async function withWorld(
  use: (world: World) => Promise<void>,
  policy: Partial<ReplicaPolicy> = {},
  seed = 1,
  offers: readonly Offer[] = [offer],
  change: Partial<Task> = {},
  records: 'on disk' | 'in memory' = 'on disk',
): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'svc-sim-'));
  const clock = records === 'on disk' ? new FakeClock() : new FakeClock(undefined, 1);
  const store = records === 'on disk' ? await openStore({ path: join(home, 'state.db'), clock }) : memoryStore();
  const files = servicePaths(homePaths(home, 0), '0a1b2c3d');
  try {
    const spec = aServiceSpec();
    const atLeast = policy.minReplicas === undefined ? {} : { maxReplicas: policy.minReplicas };
    const task = aTask({ service: { ...spec, replicaPolicy: { ...spec.replicaPolicy, ...atLeast, ...policy } }, ...change });
    const event = { at: 0, subject: 'chat', subjectKey: '0a1b2c3d', replicaId: null, from: null, to: null, cause: 'up', message: '' };
    await store.services.add(aService({ revision: 0 }), aVersion({ task }), event, 1);
    const world = new World(store, records === 'on disk' ? files : withoutLogs(files, home), seed, clock, offers);
    await world.start();
    await use(world);
    await world.crash();
  } finally {
    await store.close();
    rmSync(home, { recursive: true, force: true });
  }
}
