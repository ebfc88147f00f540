import { msOf, type Board } from '../board/board.ts';
import type { PlacedReplica } from './replica.ts';
import { SharedHealthRecord } from '../board/health-record.ts';
import { StallDetector, type ReplicaActivity } from './stall-detector.ts';

/** Marks hold for longer than from one look to the next. */
const markMs = 1_000;

/** Looks for silent replicas in what the threads have counted, and marks them there. Runs on the main thread, which is never busy with requests. */
export class StallWatch {
  readonly #board: Board;
  readonly #detector = new StallDetector();

  constructor(board: Board) {
    this.#board = board;
  }

  /** Gives the replicas that have just been found silent. `now`: monotonic ms. */
  look(replicas: readonly PlacedReplica[], now: number): readonly PlacedReplica[] {
    const serving = replicas.filter(({ state }) => state === 'serving');
    const before = serving.map(({ slot }) => this.#activityOf(slot, now));
    const stalled = this.#detector.judge(before, now);
    for (const { slot, isStalled } of before) {
      if (stalled.includes(slot) !== isStalled) {
        Atomics.store(this.#board.cells, this.#board.slotCell('isStalled', slot), stalled.includes(slot) ? 1 : 0);
      }
    }
    if (stalled.length > 0) this.#board.raiseMark(now + markMs);
    return serving.filter(({ slot }, index) => stalled.includes(slot) && before[index]?.isStalled === false);
  }

  #activityOf(slot: number, now: number): ReplicaActivity {
    const { cells } = this.#board;
    let unanswered = 0;
    let answers = 0;
    let usualMs = 0;
    let heardAt = 0;
    let waitingSince = Number.POSITIVE_INFINITY;
    for (let thread = 0; thread < this.#board.threads; thread += 1) {
      const row = (figure: Parameters<Board['rowCell']>[0]): number => cells[this.#board.rowCell(figure, thread, slot)] ?? 0;
      if (row('unanswered') > 0) waitingSince = Math.min(waitingSince, row('waitingSince'));
      unanswered += row('unanswered');
      answers = (answers + row('answers')) | 0;
      usualMs = Math.max(usualMs, row('answerMs'));
      heardAt = Math.max(heardAt, row('heardAt'));
    }
    return {
      slot,
      unanswered,
      silentSince: unanswered === 0 ? now : msOf(Math.max(heardAt, waitingSince)),
      answers,
      usualMs,
      isEjected: new SharedHealthRecord(this.#board, slot).ejectedUntil > now,
      isStalled: cells[this.#board.slotCell('isStalled', slot)] !== 0,
    };
  }
}
