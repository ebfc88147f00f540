import type { SessionKey } from '../../domain/task.ts';
import type { Random } from '../../shared/random.ts';
import type { BoardRow } from '../board/board.ts';
import { RoomSignal } from '../board/room-signal.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { Policy, PolicyState } from '../policy/policies.ts';
import type { ReplicaServices } from './replica-pool.ts';
import { hasVersions, Replica, type SlottedReplica } from './replica.ts';
import { VersionRoutes, type Route } from './version-routes.ts';

/** The chosen replica and the reason, for the access log. */
export interface Choice {
  readonly replica: Replica;
  /** Before this request. */
  readonly load: number;
  /** `only`: there was no other. `last_resort`: all candidates are avoided for the moment. Else the policy's name. */
  readonly reason: string;
  /** That the request should get, for further attempts. Undefined: any. */
  readonly version: number | undefined;
}

/** Tries when other threads choose at the same moment. The last choice, very rare, is as good as random. */
const maxTries = 8;

/** The replicas of the service, from the view of one thread's requests. */
export class ReplicaSet {
  /** For the requests that found each replica full. */
  readonly room: RoomSignal;
  readonly #policy: Policy;
  readonly #state: PolicyState;
  readonly #services: ReplicaServices;
  readonly #row: BoardRow;
  readonly #session: SessionKey | undefined;
  #routes: VersionRoutes | undefined;
  #hasVersions = false;
  #isVersionShown = false;
  #replicas: readonly Replica[] = [];
  #serving: readonly Replica[] = [];

  constructor(policy: Policy, random: Random, services: ReplicaServices, row: BoardRow, session?: SessionKey) {
    this.#policy = policy;
    this.#state = { random };
    this.#services = services;
    this.#row = row;
    this.#session = session;
    this.room = new RoomSignal(row);
  }

  /** Puts a new set in force: from now on only replicas that serve in it get requests. */
  apply(replicas: readonly SlottedReplica[]): void {
    const before = new Map(this.#replicas.map((replica) => [replica.slot, replica]));
    this.#replicas = replicas
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
    this.#routes = VersionRoutes.of(this.#replicas, this.#session, this.#row.board);
    this.#hasVersions = hasVersions(replicas);
    this.#isVersionShown = this.#hasVersions || replicas.some(({ share }) => share !== undefined);
  }

  /** The set has replicas of several versions: their outcomes are counted. */
  get hasVersions(): boolean {
    return this.#hasVersions;
  }

  /** Responses name the version that answered. */
  get isVersionShown(): boolean {
    return this.#isVersionShown;
  }

  /**
   * Chooses a replica outside `excluded` and counts the attempt there, until `endAttempt`. Undefined when none serves.
   * `full`: those that may get the request have as many as they may have. `version`: of the choice for an earlier attempt.
   *
   * Exact over all threads without a lock: the thread reads the counts of all rows and counts in its own. If another
   * thread chose meanwhile, it undoes its count and chooses again. Others may briefly see that count.
   */
  pick(request: RequestHead, excluded: readonly Replica[], version?: number): Choice | 'full' | undefined {
    const { now } = this.#services.deadlines;
    const { board } = this.#row;
    const route = this.#routes?.choose(request, version);
    let isAnnounced = false;
    for (let tries = 1; ; tries += 1) {
      const { generation } = board;
      const isMarked = now < board.markedUntil;
      const candidates = excluded.length > 0 || isMarked ? this.#candidates(excluded, now, route) : (route?.serving ?? this.#serving);
      const [first] = candidates;
      if (first === undefined) return undefined;
      let replica = this.#select(candidates, request) ?? first;
      let load = replica.inFlight;
      if (replica.isFullAt(load)) {
        const withRoom = this.#select(this.#candidates(excluded, now, route, hasRoom), request);
        // Replicas that this request excludes may have room for others.
        if (withRoom === undefined && excluded.length > 0) return undefined;
        if (withRoom === undefined && isAnnounced) return 'full';
        if (withRoom === undefined) {
          this.room.announce();
          isAnnounced = true;
          continue;
        }
        replica = withRoom;
        load = replica.inFlight;
      }
      replica.beginAttempt();
      if (board.advance(generation) || tries >= maxTries) {
        if (isAnnounced) this.room.settle();
        replica.recordChoice((generation + 1) | 0);
        const isLastResort = isMarked && isPassedOver(replica, now);
        const reason = isLastResort ? 'last_resort' : candidates.length === 1 ? 'only' : this.#policy.name;
        return { replica, load, reason, version: route?.version };
      }
      replica.endAttempt();
    }
  }

  #select(candidates: readonly Replica[], request: RequestHead): Replica | undefined {
    return candidates.length > 1 ? candidates[this.#policy.select(candidates, request, this.#state)] : candidates[0];
  }

  /**
   * The best available class: not ejected, avoided or silent; else not ejected; else any. In a class, the version of the
   * route comes first, then those with a share, then those of share 0. `mayTake`: what they must fulfil within the class.
   */
  #candidates(
    excluded: readonly Replica[],
    now: number,
    route: Route | undefined,
    mayTake: (replica: Replica) => boolean = () => true,
  ): readonly Replica[] {
    const allowed = this.#serving.filter((replica) => !excluded.includes(replica));
    if (route === undefined) return bestClass(allowed, now).filter(mayTake);
    const own = allowed.filter(({ version }) => version === route.version);
    const pinned = route.isPinned ? bestClass(own, now).filter(mayTake) : [];
    if (pinned.length > 0) return pinned;
    const usable = bestClass(allowed, now);
    const preferred = usable.filter((replica) => replica.version === route.version && mayTake(replica));
    if (preferred.length > 0) return preferred;
    // A version of share 0 helps when no other serves, not when the others are full.
    const sharing = usable.filter(({ share }) => share > 0);
    return (sharing.length > 0 ? sharing : usable).filter(mayTake);
  }

  /** An attempt failed through the replica's fault. True when the failure ejected the replica. */
  recordFailure(replica: Replica, wasRefused: boolean): boolean {
    const now = this.#services.clock.monotonic();
    const { board } = this.#row;
    const { generation } = board;
    const isDue = replica.health.recordFailure(now, (this.#ejected(now) + 1) * 2 <= this.#serving.length);
    const isEjected = isDue && this.#staysEjected(replica, now, generation);
    if (wasRefused) replica.health.recordRefusal(now);
    board.raiseMark(replica.health.markedUntil);
    return isEjected;
  }

  /** Undoes an ejection when another thread made one at the same moment and more than half would be ejected. */
  #staysEjected(replica: Replica, now: number, generation: number): boolean {
    const { board } = this.#row;
    for (let seen = generation; !board.advance(seen);) {
      seen = board.generation;
      if (this.#ejected(now) * 2 <= this.#serving.length) continue;
      replica.health.undoEjection(now);
      return false;
    }
    return true;
  }

  #ejected(now: number): number {
    return this.#serving.filter((replica) => replica.health.isEjected(now)).length;
  }

  /** The replica asked for a pause of `ms`. */
  avoid(replica: Replica, ms: number): void {
    replica.health.avoid(this.#services.clock.monotonic(), ms);
    this.#row.board.raiseMark(replica.health.markedUntil);
  }

  closeIdle(): boolean {
    return this.#replicas.some((replica) => replica.streams.closeIdle());
  }

  get serving(): number {
    return this.#serving.length;
  }
}

function bestClass(replicas: readonly Replica[], now: number): readonly Replica[] {
  const preferred = replicas.filter((replica) => !isPassedOver(replica, now));
  if (preferred.length > 0) return preferred;
  const notEjected = replicas.filter((replica) => !replica.health.isEjected(now));
  return notEjected.length > 0 ? notEjected : replicas;
}

const hasRoom = (replica: Replica): boolean => !replica.isFullAt(replica.inFlight);

function isPassedOver(replica: Replica, now: number): boolean {
  return replica.health.isEjected(now) || replica.health.isAvoided(now) || replica.isStalled;
}
