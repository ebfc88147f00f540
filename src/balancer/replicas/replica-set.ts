import type { Random } from '../../shared/random.ts';
import type { BoardRow } from '../board/board.ts';
import type { Policy } from '../policy/policy.ts';
import type { PoolServices } from './replica-pool.ts';
import { Replica, type PlacedReplica } from './replica.ts';

/** What was chosen and why, for the access log. */
export interface Choice {
  readonly replica: Replica;
  /** Requests that it had before this one. */
  readonly load: number;
  /** `only`: there was no other. `last_resort`: all candidates are avoided for the moment. Else the policy's name. */
  readonly reason: string;
}

/** How often a choice is made anew when other threads choose at the same moment. What is left then is as good as random, and is very rare. */
const maxTries = 8;

/** The replicas of the service as far as requests of one thread are concerned. */
export class ReplicaSet {
  readonly #policy: Policy;
  readonly #random: Random;
  readonly #services: PoolServices;
  readonly #row: BoardRow;
  #replicas: readonly Replica[] = [];
  #serving: readonly Replica[] = [];

  constructor(policy: Policy, random: Random, services: PoolServices, row: BoardRow) {
    this.#policy = policy;
    this.#random = random;
    this.#services = services;
    this.#row = row;
  }

  /** Puts a new set in force: from now on no request goes to a replica that is not serving in it. */
  apply(told: readonly PlacedReplica[]): void {
    const before = new Map(this.#replicas.map((replica) => [replica.slot, replica]));
    this.#replicas = told
      .toSorted((a, b) => a.id - b.id)
      .map((news) => {
        const known = before.get(news.slot);
        if (known === undefined || known.id !== news.id) return new Replica(news, this.#services, this.#row);
        before.delete(news.slot);
        known.update(news);
        return known;
      });
    for (const gone of before.values()) gone.retire();
    this.#serving = this.#replicas.filter((replica) => replica.isServing);
  }

  /**
   * Chooses a replica for one attempt and counts the attempt there, until `endAttempt`; undefined when none is serving but those in `excluded`.
   *
   * Exact over all threads without a lock: the counts of all rows are read, the attempt is counted in the own row, and the choice stands if no
   * other thread has made one in the meantime; else the count is taken back, and the choice made anew. A count that is about to be taken back can be
   * seen by others for a moment: as if that request were already where it is about to be placed.
   */
  pick(excluded: readonly Replica[]): Choice | undefined {
    const { now } = this.#services.deadlines;
    const { board } = this.#row;
    for (let tries = 1; ; tries += 1) {
      const { generation } = board;
      const isMarked = now < board.markedUntil;
      const candidates = excluded.length > 0 || isMarked ? this.#candidates(excluded, now) : this.#serving;
      const [first] = candidates;
      if (first === undefined) return undefined;
      const replica = candidates.length === 1 ? first : (candidates[this.#policy.pick(candidates, this.#random)] ?? first);
      const load = replica.inFlight;
      replica.beginAttempt();
      if (board.advance(generation) || tries >= maxTries) {
        replica.noteChoice((generation + 1) | 0);
        if (isMarked && isPassedOver(replica, now)) return { replica, load, reason: 'last_resort' };
        return { replica, load, reason: candidates.length === 1 ? 'only' : this.#policy.name };
      }
      replica.endAttempt();
    }
  }

  /** The best sort there is: neither ejected nor avoided nor silent, else not ejected, else any. */
  #candidates(excluded: readonly Replica[], now: number): readonly Replica[] {
    const allowed = this.#serving.filter((replica) => !excluded.includes(replica));
    const wanted = allowed.filter((replica) => !isPassedOver(replica, now));
    if (wanted.length > 0) return wanted;
    const inRotation = allowed.filter((replica) => !replica.health.isEjected(now));
    return inRotation.length > 0 ? inRotation : allowed;
  }

  /** An attempt failed in a way that speaks against the replica. True when it was ejected for it. */
  noteFailure(replica: Replica, wasRefused: boolean): boolean {
    const now = this.#services.clock.monotonic();
    const ejected = this.#serving.filter((other) => other.health.isEjected(now)).length;
    const isEjected = replica.health.noteFailure(now, (ejected + 1) * 2 <= this.#serving.length);
    if (wasRefused) replica.health.noteRefusal(now);
    this.#row.board.raiseMark(replica.health.markedUntil);
    return isEjected;
  }

  /** The replica asked for a pause, ms. */
  steerAway(replica: Replica, ms: number): void {
    replica.health.steerAway(this.#services.clock.monotonic(), ms);
    this.#row.board.raiseMark(replica.health.markedUntil);
  }

  /** How many serve. */
  get serving(): number {
    return this.#serving.length;
  }
}

function isPassedOver(replica: Replica, now: number): boolean {
  return replica.health.isEjected(now) || replica.health.isAvoided(now) || replica.isStalled;
}
