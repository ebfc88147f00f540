import type { World } from '../support/service-world.ts';
import { failingStores } from './faults.ts';
import type { Requests } from './requests.ts';
import type { Scenario } from './scenario.ts';
import type { ReplicaRecord } from '../../src/domain/records.ts';
import { marketOf } from '../../src/domain/spot/markets.ts';
import { isAlive, isEnded, type EndCause } from '../../src/domain/replica/replica-state.ts';

/** Ends by our own decision: no fault, and no act of a user, makes the replica unusable. */
const ownCauses: ReadonlySet<EndCause | null> = new Set<EndCause | null>(['scale-down', 'update']);

/** How long a replica may have a second machine, ms: longer than a timeout of a call and the sweep after it. */
const mostDoubledMs = 120_000;

/** A stand-in ends within this time after its spot replica was ready, ms: some passes, also of a restarted control. */
const longestStandInMs = 10_000;

/** A replica that failed may have its replacement beside it for so long, ms: two polls and a machine's second chance. */
const mostReturningMs = 30_000;

/** Duration of a drain while requests are in flight, ms: `gracefulTerminationSeconds` of the tests' services. */
const graceMs = 60_000;

/** Checks the invariants of a run after each of its steps. `check` throws an error that names the broken one. */
export class Invariants {
  readonly #world: World;
  readonly #scenario: Scenario;
  #ready: ReadonlySet<number> = new Set();
  /** Machines whose replicas may have a replacement: interrupted, silent and failing ones, and until when (monotonic ms). */
  readonly #replacedUntil = new Map<string, number>();
  /** Ready spot replicas of the last checks; `at`: monotonic ms. */
  readonly #readySpot: { readonly at: number; readonly count: number }[] = [];
  /** When a replica was first seen with a second machine, monotonic ms. */
  #doubledSince: ReadonlyMap<number, number> = new Map();
  readonly #requests: Requests;
  /** When a replica that drains was last seen before its end began, monotonic ms. */
  readonly #drainsSince = new Map<number, number>();
  #checkedAt = 0;

  constructor(world: World, scenario: Scenario, requests: Requests) {
    this.#world = world;
    this.#scenario = scenario;
    this.#requests = requests;
  }

  async check(): Promise<void> {
    const replicas = await this.#world.replicas();
    this.#checkCount(replicas);
    this.#checkMachines(replicas);
    assertDistinct(replicas);
    this.#checkDrains(replicas);
    this.#checkEndpoints(replicas);
    this.#checkOwnLosses(replicas);
    this.#checkBill(replicas);
  }

  #checkCount(replicas: readonly ReplicaRecord[]): void {
    const now = this.#world.clock.monotonic();
    for (const { id, goneReason, notice, silence } of this.#world.cloud.machines.values()) {
      // A lost machine is replaced at once, while its record may not yet say that it is lost. A notice is never forgotten.
      if (goneReason !== undefined || notice !== undefined) this.#replacedUntil.set(id, Infinity);
      else if (silence !== undefined) this.#replacedUntil.set(id, Math.max(this.#replacedUntil.get(id) ?? 0, now + mostReturningMs));
    }
    // One that fails its probes may have a replacement at once: a wall clock that jumps makes the failure look older.
    for (const { machineId, state } of replicas)
      if (machineId !== null && state === 'NOT_READY')
        this.#replacedUntil.set(machineId, Math.max(this.#replacedUntil.get(machineId) ?? 0, now + mostReturningMs));
    const isReplaced = ({ machineId }: ReplicaRecord): boolean => machineId !== null && now < (this.#replacedUntil.get(machineId) ?? 0);
    const counted = replicas.filter((one) => isAlive(one.state) && !isReplaced(one));
    const most = this.#scenario.mostReplicas + this.#standIns(counted);
    if (counted.length > most) throw broken('too many replicas', `${counted.length} live, ${most} are allowed`);
    const { mostOnDemand, mostReplicas } = this.#scenario;
    const onDemand = counted.filter((one) => marketOf(one) === 'on-demand').length;
    if (onDemand > mostOnDemand) throw broken('too many replicas on demand', `${onDemand} live, ${mostOnDemand} are allowed`);
    const spot = counted.length - onDemand;
    if (spot > mostReplicas) throw broken('too many spot replicas', `${spot} live, ${mostReplicas} are allowed`);
  }

  /** The on-demand replicas that may live beside the others. One may still live for a while after its spot replica is ready. */
  #standIns(counted: readonly ReplicaRecord[]): number {
    const { standIns, policy, update } = this.#scenario;
    if (standIns === 'none') return 0;
    const now = this.#world.clock.monotonic();
    const ready = counted.filter((one) => one.state === 'READY' && marketOf(one) === 'spot').length;
    // While the store fails, the end of a stand-in cannot be written.
    this.#readySpot.push({ at: now, count: failingStores.has(this.#world) ? 0 : ready });
    while (this.#readySpot.length > 1 && (this.#readySpot[0]?.at ?? now) < now - longestStandInMs) this.#readySpot.shift();
    const lately = Math.min(...this.#readySpot.map(({ count }) => count));
    // An update that gets no spot machine starts as many on demand as its surge; see `spotWait`.
    const isUpdating = new Set(counted.map(({ version }) => version)).size > 1;
    const updated = isUpdating ? Math.max(1, typeof update.surge === 'number' ? update.surge : 1) : 0;
    const perVersion = standIns === 'always' ? policy.maxReplicas : Math.max(0, policy.maxReplicas - lately) + updated;
    // Side by side, each version has its own.
    return update.mode === 'blue_green' ? perVersion + policy.maxReplicas : perVersion;
  }

  /** After a lost reply a replica may have a second machine, until the search for it or a sweep removes one of them. */
  #checkMachines(replicas: readonly ReplicaRecord[]): void {
    const owners = new Set<number>();
    const asks = new Set<string>();
    const doubled = new Map<number, number>();
    const now = this.#world.clock.monotonic();
    for (const { id, key, offer } of this.#world.cloud.living) {
      // A machine's key is that of its replica, followed by the digest of its offer.
      const owner = replicas.find((one) => key.startsWith(`${one.key}-`));
      if (owner === undefined) throw broken('a machine without an intent', `${id} with key ${key}`);
      // A repeated ask for one offer has the same key, so the provider returns the machine of the first ask.
      const ask = `${owner.id} ${offer.zone} ${offer.spot}`;
      if (asks.has(ask)) throw broken('two machines of one offer for one replica', `${id} and another one of replica ${owner.id}`);
      asks.add(ask);
      if (owners.has(owner.id)) {
        const since = this.#doubledSince.get(owner.id) ?? now;
        if (now - since > mostDoubledMs) throw broken('two machines for one replica', `${id} and another one of replica ${owner.id}`);
        doubled.set(owner.id, since);
      }
      owners.add(owner.id);
    }
    this.#doubledSince = doubled;
  }

  /** A replica that we end keeps its machine and its program until its requests have ended, or its time to drain is over. */
  #checkDrains(replicas: readonly ReplicaRecord[]): void {
    const now = this.#world.clock.monotonic();
    for (const { id, state, endCause, machineId, endRequestedAt } of replicas) {
      if (machineId === null || isAlive(state)) continue;
      const since = this.#drainsSince.get(id) ?? this.#checkedAt;
      this.#drainsSince.set(id, since);
      const inFlight = this.#requests.of(id);
      if (inFlight === 0) continue;
      const machine = [...this.#world.cloud.machines.values()].find((one) => one.id === machineId);
      if (machine?.isServing() === true) continue;
      this.#requests.break(id);
      const isOver = now - since >= graceMs || (endRequestedAt !== null && this.#world.clock.now() - endRequestedAt >= graceMs);
      if (inFlight > 0 && !isOver && ownCauses.has(endCause) && machine?.goneReason === 'deleted')
        throw broken('a drain was ignored', `replica ${id} ended with ${inFlight} requests in flight after ${now - since} ms`);
    }
    this.#checkedAt = now;
  }

  /**
   * The store may be a pass behind the set, so a replica may also answer its probe now. While the store fails, a stop may
   * be written without its reply. Then the next pass that can read withdraws the replica.
   */
  #checkEndpoints(replicas: readonly ReplicaRecord[]): void {
    const world = this.#world;
    if (world.isDead || world.balancer.connected === false) return;
    for (const { id, state } of world.endpoints) {
      if (state !== 'serving') continue;
      const record = replicas.find((one) => one.id === id);
      const isReady =
        record?.state === 'READY' ||
        (record !== undefined && (isAlive(record.state) || failingStores.has(world)) && answers(world, record));
      if (!isReady) throw broken('requests go to a replica that is not ready', `${id} is ${record?.state}`);
    }
  }

  /** A replica that we ended must leave as many ready ones as the service promises, apart from those lost to faults. */
  #checkOwnLosses(replicas: readonly ReplicaRecord[]): void {
    const { update, policy } = this.#scenario;
    const ready = new Set(replicas.filter(({ state }) => state === 'READY').map(({ id }) => id));
    const lost = [...this.#ready].filter((id) => !ready.has(id)).map((id) => replicas.find((one) => one.id === id));
    const own = lost.filter((one) => one !== undefined && ownCauses.has(one.endCause)).length;
    const promised = policy.minReplicas - update.maxUnavailable;
    const byFaults = lost.length - own;
    this.#ready = ready;
    if (own > 0 && ready.size + byFaults < promised) {
      throw broken('our own action left too few ready replicas', `${ready.size} are ready, ${promised} are promised, ${own} were ended`);
    }
  }

  #checkBill(replicas: readonly ReplicaRecord[]): void {
    const { limitUsd } = this.#scenario;
    if (limitUsd === undefined) return;
    const usd = replicas.filter(({ state }) => !isEnded(state)).reduce((sum, { offer }) => sum + (offer?.hourlyUsd ?? 0), 0);
    if (usd > limitUsd + 1e-9) throw broken('the bill exceeds max_hourly_cost', `$${usd} of $${limitUsd}`);
  }
}

/** Two replicas never have the same machine. */
function assertDistinct(replicas: readonly ReplicaRecord[]): void {
  const machines = replicas.flatMap(({ machineId, state }) => (machineId === null || isEnded(state) ? [] : [machineId]));
  if (new Set(machines).size !== machines.length) throw broken('two replicas have one machine', machines.join(', '));
}

/** What must not change while the service rests. */
export async function restOf(world: World): Promise<string> {
  const replicas = (await world.replicas()).filter(({ state }) => !isEnded(state));
  return replicas.map(({ id, state, version, machineId }) => `${id} ${state} v${version} ${machineId}`).join(', ');
}

/** Why the service is not at rest; undefined: it is. */
export async function whyNotConverged(world: World, least: number): Promise<string | undefined> {
  const replicas = (await world.replicas()).filter(({ state }) => !isEnded(state));
  const service = await world.store.services.get('chat');
  const states = replicas.map(({ id, state, version, market }) => `${id} ${state} v${version} ${market}`).join(', ');
  if (service?.memory.update !== undefined) return `the update has not ended: ${JSON.stringify(service.memory.update)}; ${states}`;
  if (replicas.length < least || replicas.some(({ state }) => state !== 'READY')) return `${least} should be ready: ${states}`;
  if (replicas.some(({ version }) => version !== service?.version)) return `version ${service?.version} is desired: ${states}`;
  const machines = new Set(replicas.map(({ machineId }) => machineId));
  if (world.cloud.living.length !== machines.size) return `${world.cloud.living.length} machines live: ${states}`;
  const serving = new Set(world.endpoints.filter(({ state }) => state === 'serving').map(({ id }) => id));
  const isEqual = serving.size === replicas.length && replicas.every(({ id }) => serving.has(id));
  return isEqual ? undefined : `${[...serving].join(' and ')} serve: ${states}`;
}

const broken = (invariant: string, detail: string): Error => new Error(`${invariant}: ${detail}.`);

const answers = (world: World, { address }: ReplicaRecord): boolean => address?.kind === 'tcp' && world.cloud.isServing(address.host);
