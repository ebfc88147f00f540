import type { BalancerReplica } from '../../domain/balancer-link.ts';
import { tickOf, type Board, type BoardRow } from '../board/board.ts';
import { SharedHealthRecord } from '../board/health-record.ts';
import { PassiveHealth } from './passive-health.ts';
import type { Candidate } from '../policy/policy.ts';
import type { PoolServices } from './replica-pool.ts';
import { ReplicaStreams } from './replica-streams.ts';

/** A replica with its place in the shared memory, which belongs to it and its address as long as anything is counted there. */
export interface PlacedReplica extends BalancerReplica {
  readonly slot: number;
}

/** Choices since it was last taken, of a replica that never was. */
const never = 4_294_967_296;

/** How strongly one answer moves the usual time to the first byte: quickly up, slowly down, so that it stays at the slow ones of the usual. */
const riseShare = 2;
const fallShare = 16;

/** One replica as one thread deals with it, from its first mention to the end of its last request. */
export class Replica implements Candidate {
  readonly id: number;
  readonly slot: number;
  readonly health: PassiveHealth;
  readonly streams: ReplicaStreams;
  readonly #board: Board;
  readonly #cells: Int32Array;
  readonly #services: PoolServices;
  #told: PlacedReplica;
  readonly #allInFlight: number;
  readonly #lastChoice: number;
  readonly #isStalled: number;
  // In the row of this thread, which nobody else writes.
  readonly #inFlight: number;
  readonly #unanswered: number;
  readonly #waitingSince: number;
  readonly #heardAt: number;
  readonly #answers: number;
  readonly #answerMs: number;

  constructor(told: PlacedReplica, services: PoolServices, { board, thread }: BoardRow) {
    const { slot } = told;
    this.id = told.id;
    this.slot = slot;
    this.#told = told;
    this.#board = board;
    this.#cells = board.cells;
    this.#services = services;
    this.health = new PassiveHealth(new SharedHealthRecord(board, slot));
    this.streams = new ReplicaStreams(told.address, services);
    this.#allInFlight = board.rowCell('inFlight', 0, slot);
    this.#lastChoice = board.slotCell('lastChoice', slot);
    this.#isStalled = board.slotCell('isStalled', slot);
    this.#inFlight = board.rowCell('inFlight', thread, slot);
    this.#unanswered = board.rowCell('unanswered', thread, slot);
    this.#waitingSince = board.rowCell('waitingSince', thread, slot);
    this.#heardAt = board.rowCell('heardAt', thread, slot);
    this.#answers = board.rowCell('answers', thread, slot);
    this.#answerMs = board.rowCell('answerMs', thread, slot);
    if (told.state === 'draining') this.streams.close();
  }

  /** As the reconciler told. */
  get told(): PlacedReplica {
    return this.#told;
  }

  get place(): string {
    return this.#told.place;
  }

  get weight(): number {
    return this.#told.weight;
  }

  get isServing(): boolean {
    return this.#told.state === 'serving';
  }

  /** Attempts under way in all threads, from the choice of this replica to the end of its response. */
  get inFlight(): number {
    return this.#board.sumOfRows(this.#allInFlight);
  }

  /** The same of this thread alone. */
  get ownInFlight(): number {
    return Atomics.load(this.#cells, this.#inFlight);
  }

  get sinceChoice(): number {
    const choice = Atomics.load(this.#cells, this.#lastChoice);
    return choice === 0 ? never : (this.#board.generation - choice) >>> 0;
  }

  /** It was chosen for an attempt, by the choice of that number. */
  noteChoice(generation: number): void {
    Atomics.store(this.#cells, this.#lastChoice, generation);
  }

  /** It has been silent for conspicuously long: to be used only when no other replica is to be had. */
  get isStalled(): boolean {
    return Atomics.load(this.#cells, this.#isStalled) !== 0;
  }

  /** News of the same replica at the same address. */
  update(told: PlacedReplica): void {
    this.#told = told;
    if (told.state === 'draining') this.streams.close();
    else this.streams.reopen();
  }

  /** It is no longer part of the service; requests under way go on. */
  retire(): void {
    this.#told = { ...this.#told, state: 'draining' };
    this.streams.close();
  }

  /** Each call is matched by exactly one of `endAttempt`. */
  beginAttempt(): void {
    Atomics.add(this.#cells, this.#inFlight, 1);
  }

  endAttempt(): void {
    Atomics.sub(this.#cells, this.#inFlight, 1);
  }

  /** A request was sent there. Each call is matched by exactly one of `noteFirstByte` or `noteUnanswered`. */
  noteSent(): void {
    const cells = this.#cells;
    const before = cells[this.#unanswered] ?? 0;
    if (before === 0) cells[this.#waitingSince] = this.#tick;
    cells[this.#unanswered] = before + 1;
  }

  /** The first byte of a response came, so many ms after the request was sent. */
  noteFirstByte(ms: number): void {
    const cells = this.#cells;
    this.noteUnanswered();
    this.noteHeard();
    cells[this.#answers] = ((cells[this.#answers] ?? 0) + 1) | 0;
    const usual = cells[this.#answerMs] ?? 0;
    cells[this.#answerMs] = ms > usual ? usual + Math.ceil((ms - usual) / riseShare) : usual - Math.floor((usual - ms) / fallShare);
  }

  /** A request that was sent ended without a byte of a response. */
  noteUnanswered(): void {
    this.#cells[this.#unanswered] = (this.#cells[this.#unanswered] ?? 0) - 1;
  }

  /** Bytes came from there, of whichever response: it is alive. */
  noteHeard(): void {
    this.#cells[this.#heardAt] = this.#tick;
    if (this.isStalled) Atomics.store(this.#cells, this.#isStalled, 0);
  }

  get #tick(): number {
    return tickOf(this.#services.deadlines.machineNow);
  }
}
