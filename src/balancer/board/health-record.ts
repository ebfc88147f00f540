import { msOf, tickOf, type Board } from './board.ts';
import type { HealthRecord } from '../replicas/passive-health.ts';

/** The health of one replica in the shared memory, for all threads. Times are rounded up to tenths of a second. */
export class SharedHealthRecord implements HealthRecord {
  readonly #cells: Int32Array;
  readonly #failures: number;
  readonly #failedAt: number;
  readonly #ejections: number;
  readonly #ejectedUntil: number;
  readonly #avoidedUntil: number;
  readonly #hung: number;
  readonly #cutOff: number;
  readonly #brokenSince: number;
  readonly #brokenAt: number;
  readonly #allHung: number;

  constructor(board: Board, slot: number) {
    this.#cells = board.cells;
    this.#failures = board.slotCell('failures', slot);
    this.#failedAt = board.slotCell('failedAt', slot);
    this.#ejections = board.slotCell('ejections', slot);
    this.#ejectedUntil = board.slotCell('ejectedUntil', slot);
    this.#avoidedUntil = board.slotCell('avoidedUntil', slot);
    this.#hung = board.slotCell('hung', slot);
    this.#cutOff = board.slotCell('cutOff', slot);
    this.#brokenSince = board.slotCell('brokenSince', slot);
    this.#brokenAt = board.slotCell('brokenAt', slot);
    this.#allHung = board.slotCell('allHung', slot);
  }

  countFailure(): number {
    return Atomics.add(this.#cells, this.#failures, 1) + 1;
  }

  countBroken(how: 'hung' | 'cutOff'): void {
    Atomics.add(this.#cells, how === 'hung' ? this.#hung : this.#cutOff, 1);
    if (how === 'hung') Atomics.add(this.#cells, this.#allHung, 1);
  }

  get allHung(): number {
    return Atomics.load(this.#cells, this.#allHung);
  }

  get hung(): number {
    return Atomics.load(this.#cells, this.#hung);
  }

  set hung(count: number) {
    Atomics.store(this.#cells, this.#hung, count);
  }

  get cutOff(): number {
    return Atomics.load(this.#cells, this.#cutOff);
  }

  set cutOff(count: number) {
    Atomics.store(this.#cells, this.#cutOff, count);
  }

  get brokenSince(): number {
    return msOf(Atomics.load(this.#cells, this.#brokenSince));
  }

  set brokenSince(time: number) {
    Atomics.store(this.#cells, this.#brokenSince, tickOf(time));
  }

  get brokenAt(): number {
    return msOf(Atomics.load(this.#cells, this.#brokenAt));
  }

  set brokenAt(time: number) {
    Atomics.store(this.#cells, this.#brokenAt, tickOf(time));
  }

  get failures(): number {
    return Atomics.load(this.#cells, this.#failures);
  }

  set failures(count: number) {
    Atomics.store(this.#cells, this.#failures, count);
  }

  get failedAt(): number {
    return msOf(Atomics.load(this.#cells, this.#failedAt));
  }

  set failedAt(time: number) {
    Atomics.store(this.#cells, this.#failedAt, tickOf(time));
  }

  get ejections(): number {
    return Atomics.load(this.#cells, this.#ejections);
  }

  set ejections(count: number) {
    Atomics.store(this.#cells, this.#ejections, count);
  }

  get ejectedUntil(): number {
    return msOf(Atomics.load(this.#cells, this.#ejectedUntil));
  }

  set ejectedUntil(time: number) {
    Atomics.store(this.#cells, this.#ejectedUntil, tickOf(time));
  }

  get avoidedUntil(): number {
    return msOf(Atomics.load(this.#cells, this.#avoidedUntil));
  }

  set avoidedUntil(time: number) {
    Atomics.store(this.#cells, this.#avoidedUntil, tickOf(time));
  }
}
