import type { BrokenReplicas, SuspectReason } from '../../domain/balancer-link.ts';
import { type Board, msOf } from '../board/board.ts';
import type { SlottedReplica } from './replica.ts';
import { SharedHealthRecord } from '../board/health-record.ts';
import { PassiveHealth } from './passive-health.ts';

/** A mark outlasts the interval between two checks. */
const markMs = 1_000;

interface StallFindings {
  /** Replicas that get no new requests from now on. */
  readonly stalled: readonly SlottedReplica[];
  readonly suspects: readonly { readonly id: number; readonly reason: Extract<SuspectReason, 'timeout' | 'silent'> }[];
}

/** Marks silent replicas by the threads' counts. Runs on the main thread, which serves no requests. */
export class StallWatch {
  readonly #board: Board;
  readonly #detector = new StallDetector();

  constructor(board: Board) {
    this.#board = board;
  }

  /** The replicas whose last requests all got no complete response; undefined: none. `now`: monotonic ms. */
  broken(replicas: readonly SlottedReplica[], now: number): BrokenReplicas | undefined {
    const found = replicas.flatMap(({ id, slot }) => {
      const { isStalled, unanswered, silentSince: since } = this.#activityOf(slot, now);
      const health = new PassiveHealth(new SharedHealthRecord(this.#board, slot));
      const broken = health.broken({ waiting: isStalled ? unanswered : 0, since, now });
      return broken === undefined ? [] : [[id, broken] as const];
    });
    return found.length === 0 ? undefined : Object.fromEntries(found);
  }

  /** `now`: monotonic ms. */
  check(replicas: readonly SlottedReplica[], now: number): StallFindings {
    const serving = replicas.filter(({ state }) => state === 'serving');
    const before = serving.map(({ slot }) => this.#activityOf(slot, now));
    const stalled = this.#detector.judge(before, now);
    for (const { slot, isStalled } of before) {
      if (stalled.includes(slot) !== isStalled) {
        Atomics.store(this.#board.cells, this.#board.slotCell('isStalled', slot), stalled.includes(slot) ? 1 : 0);
      }
    }
    if (stalled.length > 0) this.#board.raiseMark(now + markMs);
    return {
      stalled: serving.filter(({ slot }, index) => stalled.includes(slot) && before[index]?.isStalled === false),
      suspects: this.#judgeSilence(replicas, now),
    };
  }

  /**
   * Includes draining replicas: a slow probe makes a replica drain. Fails requests at hung replicas after a long
   * silence.
   */
  #judgeSilence(replicas: readonly SlottedReplica[], now: number): StallFindings['suspects'] {
    const activities = replicas.map(({ slot }) => this.#activityOf(slot, now));
    const usualMs = Math.max(0, ...activities.map((activity) => activity.usualMs));
    // Before the first answer, the usual time is unknown.
    const isUsualKnown = activities.some(({ answers }) => answers !== 0);
    const isAnyServing = replicas.some(({ state }) => state === 'serving');
    return replicas.flatMap(({ id, slot, lost }, index) => {
      const activity = activities[index];
      const silence = activity === undefined ? 'none' : silenceOf(activity, usualMs, now);
      const isOver = lost === 'hung' && isUsualKnown && activity !== undefined && isGivenUp(activity, usualMs, now, isAnyServing);
      Atomics.store(this.#board.cells, this.#board.slotCell('isGivenUp', slot), isOver ? 1 : 0);
      // The requests of a stalled replica may have moved, so no request may wait there.
      const isSilent = silence === 'long' || activity?.isStalled === true;
      if ((silence === 'none' && !isSilent) || lost !== undefined) return [];
      return [{ id, reason: isSilent ? 'silent' : 'timeout' } as const];
    });
  }

  #activityOf(slot: number, now: number): ReplicaActivity {
    const { cells } = this.#board;
    let unanswered = 0;
    let answers = 0;
    let usualMs = 0;
    let lastSeenAt = 0;
    let waitingSince = Number.POSITIVE_INFINITY;
    for (let thread = 0; thread < this.#board.threads; thread += 1) {
      const row = (figure: Parameters<Board['rowCell']>[0]): number => cells[this.#board.rowCell(figure, thread, slot)] ?? 0;
      if (row('unanswered') > 0) waitingSince = Math.min(waitingSince, row('waitingSince'));
      unanswered += row('unanswered');
      answers = (answers + row('answers')) | 0;
      usualMs = Math.max(usualMs, row('answerMs'));
      lastSeenAt = Math.max(lastSeenAt, row('lastSeenAt'));
    }
    return {
      slot,
      unanswered,
      silentSince: unanswered === 0 ? now : msOf(Math.max(lastSeenAt, waitingSince)),
      answers,
      usualMs,
      isEjected: new SharedHealthRecord(this.#board, slot).ejectedUntil > now,
      isStalled: cells[this.#board.slotCell('isStalled', slot)] !== 0,
    };
  }
}

/** The state of one replica at a moment. Times are monotonic ms. */
export interface ReplicaActivity {
  readonly slot: number;
  /** Requests sent there without a byte of response so far. */
  readonly unanswered: number;
  /** Start of the silence; meaningless when `unanswered` is 0. */
  readonly silentSince: number;
  /** Number of first bytes so far; wraps around at 2^32. */
  readonly answers: number;
  /** The usual time from a request to the first byte, ms; 0 while unknown. */
  readonly usualMs: number;
  readonly isEjected: boolean;
  /** It was found silent, and sent no byte since. */
  readonly isStalled: boolean;
}

/** Shorter silence is ignored, however the other replicas respond. */
const leastSilenceMs = 1_000;
/** Silence this many times longer than the others' usual time is too long. */
const timesUsual = 4;
/** One slow request may just be a hard one. It is enough for a replica that is ejected or on trial. */
const leastUnanswered = 2;
const leastUnansweredOnTrial = 1;
/** With fewer answers of other replicas meanwhile, the normal time is unknown. */
const leastAnswers = 3;
/** A stalled replica without pending requests (its clients disconnected) gets another try after this time. */
const restMs = 10_000;

/**
 * `noticeable`: worth a probe. `long`: longer than answers take. `usualMs` is of the slowest replica, so one that
 * processes one request at a time does not count as hung.
 */
type Silence = 'none' | 'noticeable' | 'long';

/** Pure. */
export function silenceOf({ unanswered, silentSince }: ReplicaActivity, usualMs: number, now: number): Silence {
  const silentMs = now - silentSince;
  if (unanswered === 0 || silentMs < leastSilenceMs) return 'none';
  return silentMs < timesUsual * usualMs ? 'noticeable' : 'long';
}

/**
 * How long requests at a hung replica wait while no replica serves, ms: the replica may only be busy. Same as the
 * default timeout of a probe.
 */
const hungTimeoutMs = 15_000;

/** Whether to fail requests at a hung replica. `isAnyServing`: clients that retry reach another replica. Pure. */
export function isGivenUp(activity: ReplicaActivity, usualMs: number, now: number, isAnyServing: boolean): boolean {
  return silenceOf(activity, usualMs, now) === 'long' && (isAnyServing || now - activity.silentSince >= hungTimeoutMs);
}

interface Memory {
  silentSince: number;
  /** Answers of all other replicas when the silence began. */
  othersBefore: number;
  stalledAt: number | undefined;
}

/**
 * Finds replicas that accept requests and answer none, long before the limit for the first byte. That limit must be
 * long enough for the slowest model.
 *
 * The detector compares: a replica with several requests is silent for far longer than the others need, while those
 * continue to answer. Such a replica is only passed over, and never more than half of them are. Its first byte ends
 * that, so a slow replica loses only a share of new requests while it is slow. Pure: time is passed in.
 */
export class StallDetector {
  readonly #memories = new Map<number, Memory>();
  /** Replicas that got another try and have not answered since, by slot: their number of answers at that time. */
  readonly #onTrial = new Map<number, number>();

  /** The slots of replicas to pass over from now on, longest silence first. Call it several times a second. */
  judge(all: readonly ReplicaActivity[], now: number): readonly number[] {
    const total = all.reduce((sum, { answers }) => (sum + answers) | 0, 0);
    const suspects = all.filter((activity) => this.#isSuspect(activity, all, (total - activity.answers) | 0, now));
    const room = Math.max(0, Math.floor(all.length / 2) - all.filter(({ isEjected }) => isEjected).length);
    const passedOver = suspects.filter(({ isEjected }) => !isEjected).toSorted((a, b) => a.silentSince - b.silentSince);
    // An ejected replica gets no requests already; the mark lets its requests move to others.
    const stalled = [...suspects.filter(({ isEjected }) => isEjected), ...passedOver.slice(0, room)];
    for (const [slot, memory] of this.#memories) {
      if (stalled.some((activity) => activity.slot === slot)) memory.stalledAt ??= now;
      else memory.stalledAt = undefined;
      if (!all.some((activity) => activity.slot === slot)) this.#memories.delete(slot);
    }
    return stalled.map(({ slot }) => slot);
  }

  #isSuspect(activity: ReplicaActivity, all: readonly ReplicaActivity[], others: number, now: number): boolean {
    const { slot, unanswered, silentSince, answers, isEjected, isStalled } = activity;
    const memory = this.#memories.get(slot);
    if (this.#onTrial.get(slot) !== answers) this.#onTrial.delete(slot);
    if (memory?.stalledAt !== undefined && isStalled && unanswered === 0) {
      const isResting = now - memory.stalledAt < restMs;
      if (!isResting) this.#onTrial.set(slot, answers);
      return isResting;
    }
    if (unanswered === 0 || memory === undefined || silentSince !== memory.silentSince) {
      this.#memories.set(slot, { silentSince, othersBefore: others, stalledAt: isStalled ? memory?.stalledAt : undefined });
      return isStalled && unanswered > 0 && memory?.stalledAt !== undefined;
    }
    if (isStalled && memory.stalledAt !== undefined) return true;
    const usual = Math.max(0, ...all.map((other) => (other.slot === slot || other.isStalled ? 0 : other.usualMs)));
    const isLong = now - silentSince >= Math.max(leastSilenceMs, timesUsual * usual);
    const answered = (others - memory.othersBefore) | 0;
    const least = isEjected || this.#onTrial.has(slot) ? leastUnansweredOnTrial : leastUnanswered;
    return isLong && unanswered >= least && answered >= Math.max(leastAnswers, unanswered);
  }
}
