import type { BalancerReplica } from '../../domain/balancer-link.ts';
import { msOf, tickOf, type Board, type BoardRow } from '../board/board.ts';
import { SharedHealthRecord } from '../board/health-record.ts';
import { hasHung } from './hung-series.ts';
import { PassiveHealth } from './passive-health.ts';
import type { Candidate } from '../policy/policies.ts';
import type { ReplicaServices } from './replica-pool.ts';
import { ReplicaStreams } from './replica-streams.ts';

/** A replica with its slot in the shared memory, which it keeps as long as any thread counts there. */
export interface SlottedReplica extends BalancerReplica {
  readonly slot: number;
}

/** Whether an endpoint set has replicas of several versions. */
export function hasVersions(replicas: readonly SlottedReplica[]): boolean {
  return replicas.some(({ version }) => version !== replicas[0]?.version);
}

/** `doubtful`: silent while others answer. `little`: its probes fail too. `none`: gone, or silent for far too long. */
type Prospect = 'good' | 'doubtful' | 'little' | 'none';

/** `sinceChoice` of a replica that was never chosen. */
const never = 4_294_967_296;

/** Divisors of the step to each new answer. The usual time rises fast and falls slowly: it stays near the slow end. */
const riseShare = 2;
const fallShare = 16;

/** One replica from the view of one thread, from its first mention to the end of its last request. */
export class Replica implements Candidate {
  readonly id: number;
  readonly slot: number;
  readonly health: PassiveHealth;
  readonly streams: ReplicaStreams;
  readonly #board: Board;
  readonly #cells: Int32Array;
  readonly #services: ReplicaServices;
  #reported: SlottedReplica;
  readonly #allInFlight: number;
  readonly #allLastSeenAt: number;
  readonly #lastChoice: number;
  readonly #isStalled: number;
  readonly #isGivenUp: number;
  // In this thread's row, which no other thread writes.
  readonly #inFlight: number;
  readonly #unanswered: number;
  readonly #waitingSince: number;
  readonly #lastSeenAt: number;
  readonly #answers: number;
  readonly #answerMs: number;

  constructor(reported: SlottedReplica, services: ReplicaServices, { board, thread }: BoardRow) {
    const { slot } = reported;
    this.id = reported.id;
    this.slot = slot;
    this.#reported = reported;
    this.#board = board;
    this.#cells = board.cells;
    this.#services = services;
    this.health = new PassiveHealth(new SharedHealthRecord(board, slot));
    this.streams = new ReplicaStreams(reported.address, services);
    this.#allInFlight = board.rowCell('inFlight', 0, slot);
    this.#allLastSeenAt = board.rowCell('lastSeenAt', 0, slot);
    this.#lastChoice = board.slotCell('lastChoice', slot);
    this.#isStalled = board.slotCell('isStalled', slot);
    this.#isGivenUp = board.slotCell('isGivenUp', slot);
    this.#inFlight = board.rowCell('inFlight', thread, slot);
    this.#unanswered = board.rowCell('unanswered', thread, slot);
    this.#waitingSince = board.rowCell('waitingSince', thread, slot);
    this.#lastSeenAt = board.rowCell('lastSeenAt', thread, slot);
    this.#answers = board.rowCell('answers', thread, slot);
    this.#answerMs = board.rowCell('answerMs', thread, slot);
    if (reported.state === 'draining') this.streams.close();
  }

  get reported(): SlottedReplica {
    return this.#reported;
  }

  get location(): string {
    return this.#reported.place;
  }

  get weight(): number {
    return this.#reported.weight;
  }

  /** 0 when the reconciler did not send it. */
  get version(): number {
    return this.#reported.version ?? 0;
  }

  /** Of its version, 0 to 1. */
  get share(): number {
    return this.#reported.share ?? 0;
  }

  get isServing(): boolean {
    return this.#reported.state === 'serving';
  }

  /** Attempts in flight in all threads, from the choice of this replica to the end of its response. */
  get inFlight(): number {
    return this.#board.sumOfRows(this.#allInFlight);
  }

  /** `load`: its attempts in flight. A full replica gets no further request. */
  isFullAt(load: number): boolean {
    return load >= this.#services.maxConnectionsPerReplica;
  }

  get ownInFlight(): number {
    return Atomics.load(this.#cells, this.#inFlight);
  }

  get sinceChoice(): number {
    const choice = Atomics.load(this.#cells, this.#lastChoice);
    return choice === 0 ? never : (this.#board.generation - choice) >>> 0;
  }

  recordChoice(generation: number): void {
    Atomics.store(this.#cells, this.#lastChoice, generation);
  }

  /** Silent for conspicuously long: the balancer uses it only when no other replica is available. */
  get isStalled(): boolean {
    return Atomics.load(this.#cells, this.#isStalled) !== 0;
  }

  /** What a request that waits for its first byte can expect of this replica. */
  get prospect(): Prospect {
    const { lost } = this.#reported;
    if (lost === 'gone' || (lost === 'hung' && Atomics.load(this.#cells, this.#isGivenUp) !== 0)) return 'none';
    if (lost === 'hung') return 'little';
    return this.isStalled ? 'doubtful' : 'good';
  }

  update(reported: SlottedReplica): void {
    this.#reported = reported;
    if (reported.state === 'draining') this.streams.close();
    else this.streams.reopen();
  }

  /** Running requests continue. */
  retire(): void {
    this.#reported = { ...this.#reported, state: 'draining' };
    this.streams.close();
  }

  /** Each call is matched by exactly one `endAttempt`. */
  beginAttempt(): void {
    Atomics.add(this.#cells, this.#inFlight, 1);
  }

  endAttempt(): void {
    Atomics.sub(this.#cells, this.#inFlight, 1);
    this.#board.makeRoom();
  }

  /** Each call is matched by exactly one `recordFirstByte` or `recordUnanswered`. */
  recordAwaited(): void {
    const cells = this.#cells;
    const before = cells[this.#unanswered] ?? 0;
    if (before === 0) cells[this.#waitingSince] = this.#tick;
    cells[this.#unanswered] = before + 1;
  }

  /** `ms`: how long the request waited. */
  recordFirstByte(ms: number): void {
    const cells = this.#cells;
    this.recordUnanswered();
    this.markSeen();
    cells[this.#answers] = ((cells[this.#answers] ?? 0) + 1) | 0;
    const usual = cells[this.#answerMs] ?? 0;
    cells[this.#answerMs] = ms > usual ? usual + Math.ceil((ms - usual) / riseShare) : usual - Math.floor((usual - ms) / fallShare);
  }

  /** A request stops waiting for the replica, without a byte of a response. */
  recordUnanswered(): void {
    this.#cells[this.#unanswered] = (this.#cells[this.#unanswered] ?? 0) - 1;
  }

  /** Bytes of any response came: the replica is alive. */
  markSeen(): void {
    this.#cells[this.#lastSeenAt] = this.#tick;
    if (this.isStalled) Atomics.store(this.#cells, this.#isStalled, 0);
  }

  /** Its client gives up a request that has waited `ms` for the first byte. */
  recordGivenUp(ms: number): void {
    const { deadlines } = this.#services;
    const silentMs = deadlines.machineNow - msOf(this.#board.highestOfRows(this.#allLastSeenAt));
    if (hasHung(Math.min(ms, silentMs), this.#board.usualMs)) this.health.recordBroken(deadlines.machineNow, 'hung');
  }

  get #tick(): number {
    return tickOf(this.#services.deadlines.machineNow);
  }
}
