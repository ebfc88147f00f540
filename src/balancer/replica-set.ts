import type { BalancerReplica } from '../domain/balancer-link.ts';
import type { Random } from '../shared/random.ts';
import type { ReplicaAddress } from '../shared/replica-address.ts';
import type { Policy } from './policy/policy.ts';
import { Replica } from './replica.ts';
import type { PoolServices } from './replica-pool.ts';

/** What was chosen and why, for the access log. */
export interface Choice {
  readonly replica: Replica;
  /** Requests that it had before this one. */
  readonly load: number;
  /** `only`: there was no other. `last_resort`: all candidates are avoided for the moment. Else the policy's name. */
  readonly reason: string;
}

/** The replicas of the service as far as requests are concerned. */
export class ReplicaSet {
  readonly #policy: Policy;
  readonly #random: Random;
  readonly #services: PoolServices;
  #replicas: readonly Replica[] = [];
  #serving: readonly Replica[] = [];
  #choices = 0;
  /** Not told any more but not done with all requests. */
  #leaving: readonly Replica[] = [];
  /** Until then, monotonic ms, some replica may be ejected or avoided, and the candidates must be looked at one by one. */
  #markedUntil = Number.NEGATIVE_INFINITY;

  constructor(policy: Policy, random: Random, services: PoolServices) {
    this.#policy = policy;
    this.#random = random;
    this.#services = services;
  }

  /** Puts a new set in force: from now on no request goes to a replica that is not serving in it. */
  apply(told: readonly BalancerReplica[]): void {
    const before = new Map(this.#replicas.map((replica) => [replica.id, replica]));
    this.#replicas = told
      .toSorted((a, b) => a.id - b.id)
      .map((news) => {
        const known = before.get(news.id);
        if (known === undefined || !isSameAddress(known.told.address, news.address)) return new Replica(news, this.#services);
        before.delete(news.id);
        known.update(news);
        return known;
      });
    for (const gone of before.values()) gone.retire();
    this.#leaving = [...this.#leaving, ...before.values()].filter((replica) => replica.inFlight > 0);
    this.#serving = this.#replicas.filter((replica) => replica.isServing);
  }

  /**
   * Chooses a replica for one attempt and counts the attempt there, until `endAttempt`; undefined when none is serving but those in `excluded`.
   */
  pick(excluded: readonly Replica[]): Choice | undefined {
    const now = this.#services.deadlines.now;
    const mustLook = excluded.length > 0 || now < this.#markedUntil;
    const candidates = mustLook ? this.#candidates(excluded, now) : this.#serving;
    const [first] = candidates;
    if (first === undefined) return undefined;
    const replica = candidates.length === 1 ? first : (candidates[this.#policy.pick(candidates, this.#random)] ?? first);
    this.#choices += 1;
    replica.noteChoice(this.#choices);
    const load = replica.inFlight;
    replica.beginAttempt();
    if (now < this.#markedUntil && (replica.health.isAvoided(now) || replica.health.isEjected(now)))
      return { replica, load, reason: 'last_resort' };
    return { replica, load, reason: candidates.length === 1 ? 'only' : this.#policy.name };
  }

  /** The best sort there is: neither ejected nor avoided, else not ejected, else any. */
  #candidates(excluded: readonly Replica[], now: number): readonly Replica[] {
    const allowed = this.#serving.filter((replica) => !excluded.includes(replica));
    const inRotation = allowed.filter((replica) => !replica.health.isEjected(now));
    const wanted = inRotation.filter((replica) => !replica.health.isAvoided(now));
    if (wanted.length > 0) return wanted;
    return inRotation.length > 0 ? inRotation : allowed;
  }

  /** An attempt failed in a way that speaks against the replica. True when it was ejected for it. */
  noteFailure(replica: Replica, wasRefused: boolean): boolean {
    const now = this.#services.clock.monotonic();
    const ejected = this.#serving.filter((other) => other.health.isEjected(now)).length;
    const isEjected = replica.health.noteFailure(now, (ejected + 1) * 2 <= this.#serving.length);
    if (wasRefused) replica.health.noteRefusal(now);
    this.#markedUntil = Math.max(this.#markedUntil, replica.health.markedUntil);
    return isEjected;
  }

  /** The replica asked for a pause, ms. */
  steerAway(replica: Replica, ms: number): void {
    replica.health.steerAway(this.#services.clock.monotonic(), ms);
    this.#markedUntil = Math.max(this.#markedUntil, replica.health.markedUntil);
  }

  /** Attempts under way by replica id; also of replicas that are not part of the service any more and still have some. */
  inFlight(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const replica of [...this.#leaving, ...this.#replicas]) {
      if (replica.inFlight > 0 || !this.#leaving.includes(replica)) counts[replica.id] = (counts[replica.id] ?? 0) + replica.inFlight;
    }
    return counts;
  }

  get hasServing(): boolean {
    return this.#serving.length > 0;
  }
}

function isSameAddress(a: ReplicaAddress, b: ReplicaAddress): boolean {
  if (a.kind === 'tcp') return b.kind === 'tcp' && a.host === b.host && a.port === b.port;
  return b.kind === 'unix' && a.path === b.path && a.port === b.port;
}
