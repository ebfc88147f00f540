import type { BrokenReplicas, SuspectReason } from '../../domain/balancer-link.ts';
import type { Random } from '../../shared/random.ts';
import { type Board, msOf } from '../board/board.ts';
import type { SlottedReplica } from './replica.ts';
import { SharedHealthRecord } from '../board/health-record.ts';
import { HungSeries, timesUsual, type HungCounts } from './hung-series.ts';
import { failuresToEject, PassiveHealth } from './passive-health.ts';

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
  readonly #detector: StallDetector;

  constructor(board: Board, random: Random) {
    this.#board = board;
    this.#detector = new StallDetector(random);
  }

  /** The replicas whose last requests all got no complete response; undefined: none. `now`: monotonic ms. */
  broken(replicas: readonly SlottedReplica[], now: number): BrokenReplicas | undefined {
    const found = replicas.flatMap((replica) => {
      const { id, slot } = replica;
      const activity = this.#activityOf(replica, now);
      const { isStalled, unanswered, silentSince: since } = activity;
      const health = new PassiveHealth(new SharedHealthRecord(this.#board, slot));
      const broken = health.broken({ waiting: isStalled ? unanswered : 0, since, now });
      if (broken === undefined) return [];
      // Too few break-offs to prove anything alone: then those that hung must be more than chance.
      if (broken.cutOff < failuresToEject && this.#detector.chanceOf(activity, now) > leastChance) return [];
      return [[id, broken] as const];
    });
    return found.length === 0 ? undefined : Object.fromEntries(found);
  }

  /** `now`: monotonic ms. */
  check(replicas: readonly SlottedReplica[], now: number): StallFindings {
    const serving = replicas.filter(({ state }) => state === 'serving');
    const before = serving.map((replica) => this.#activityOf(replica, now));
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
    const activities = replicas.map((replica) => this.#activityOf(replica, now));
    const usualMs = Math.max(0, ...activities.map((activity) => activity.usualMs));
    this.#board.usualMs = usualMs;
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

  #activityOf({ slot, version }: SlottedReplica, now: number): ReplicaActivity {
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
    const record = new SharedHealthRecord(this.#board, slot);
    return {
      slot,
      version,
      hung: record.hung,
      allHung: record.allHung,
      unanswered,
      silentSince: unanswered === 0 ? now : msOf(Math.max(lastSeenAt, waitingSince)),
      answers,
      usualMs,
      isEjected: record.ejectedUntil > now,
      isStalled: cells[this.#board.slotCell('isStalled', slot)] !== 0,
    };
  }
}

/** The state of one replica at a moment. Times are monotonic ms. */
export interface ReplicaActivity extends HungCounts {
  /** Start of the silence; meaningless when `unanswered` is 0. */
  readonly silentSince: number;
  /** The usual time from a request to the first byte, ms; 0 while unknown. */
  readonly usualMs: number;
  readonly isEjected: boolean;
}

/** Shorter silence is ignored, however the other replicas respond. */
const leastSilenceMs = 1_000;
/** One slow request may just be a hard one. It is enough for a replica that is ejected or on trial. */
const leastUnanswered = 2;
const leastUnansweredOnTrial = 1;
/** With fewer answers of other replicas meanwhile, the normal time is unknown. */
const leastAnswers = 3;
/**
 * A stalled replica without pending requests (its clients disconnected) gets another try after this time, and after a
 * random number of requests to other replicas. Without chance, its turn can come with the same kind of request each time.
 */
const restMs = 10_000;
/** It gets the try at the latest after this time, when a service has almost no requests. */
const longestRestMs = 300_000;
/** The random number is at most so many times the number of replicas. */
const turnsAtRest = 2;
/** A series of hung requests that a sound replica has with a higher chance does not mark the replica. */
const leastChanceToPassOver = 1e-3;
/** A replacement costs a machine. With 10,000 series a day, a sound replica would be reported once in 100 days. */
const leastChance = 1e-6;

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
  /** How many requests end at other replicas before this one gets another try; see `HungSeries.othersOf`. */
  othersBeforeTrial: number;
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
  readonly #series = new HungSeries();
  readonly #random: Random;
  /** Hung requests in a row for which a replica was already passed over, by slot. */
  readonly #judged = new Map<number, number>();

  constructor(random: Random) {
    this.#random = random;
  }

  /** See `HungSeries`. */
  chanceOf(activity: ReplicaActivity, now: number): number {
    return this.#series.chanceOf(activity, now);
  }

  /** The slots of replicas to pass over from now on, longest silence first. Call it several times a second. */
  judge(all: readonly ReplicaActivity[], now: number): readonly number[] {
    this.#series.observe(all, now);
    const total = all.reduce((sum, { answers }) => (sum + answers) | 0, 0);
    const suspects = all.filter((activity) => this.#isSuspect(activity, all, (total - activity.answers) | 0, now));
    const room = Math.max(0, Math.floor(all.length / 2) - all.filter(({ isEjected }) => isEjected).length);
    const passedOver = suspects.filter(({ isEjected }) => !isEjected).toSorted((a, b) => a.silentSince - b.silentSince);
    // An ejected replica gets no requests already; the mark lets its requests move to others.
    const stalled = [...suspects.filter(({ isEjected }) => isEjected), ...passedOver.slice(0, room)];
    for (const { slot, hung } of stalled) {
      this.#judged.set(slot, hung);
      this.#series.recordPassedOver(slot);
    }
    for (const [slot, memory] of this.#memories) {
      if (!stalled.some((activity) => activity.slot === slot)) memory.stalledAt = undefined;
      else if (memory.stalledAt === undefined) {
        memory.stalledAt = now;
        memory.othersBeforeTrial = this.#series.othersOf(slot) + Math.ceil((1 - this.#random()) * turnsAtRest * all.length);
      }
      if (all.some((activity) => activity.slot === slot)) continue;
      this.#memories.delete(slot);
      this.#judged.delete(slot);
    }
    return stalled.map(({ slot }) => slot);
  }

  #isSuspect(activity: ReplicaActivity, all: readonly ReplicaActivity[], others: number, now: number): boolean {
    const { slot, unanswered, silentSince, answers, isEjected, isStalled } = activity;
    const memory = this.#memories.get(slot);
    if (this.#onTrial.get(slot) !== answers) this.#onTrial.delete(slot);
    if (memory?.stalledAt !== undefined && isStalled && unanswered === 0) {
      const restedMs = now - memory.stalledAt;
      // Without another replica of its version then, only the time counts.
      const { othersBeforeTrial: most } = memory;
      const isAwaited = Number.isFinite(most) && this.#series.othersOf(slot) < most;
      const isResting = restedMs < restMs || (restedMs < longestRestMs && isAwaited);
      if (!isResting) this.#onTrial.set(slot, answers);
      return isResting;
    }
    if (unanswered === 0 || memory === undefined || silentSince !== memory.silentSince) {
      const { stalledAt, othersBeforeTrial = 0 }: Partial<Memory> = isStalled ? (memory ?? {}) : {};
      this.#memories.set(slot, { silentSince, othersBefore: others, stalledAt, othersBeforeTrial });
      return this.#isSeriesNew(activity, now) || (isStalled && unanswered > 0 && memory?.stalledAt !== undefined);
    }
    if ((isStalled && memory.stalledAt !== undefined) || this.#isSeriesNew(activity, now)) return true;
    const usual = Math.max(0, ...all.map((other) => (other.slot === slot || other.isStalled ? 0 : other.usualMs)));
    const isLong = now - silentSince >= Math.max(leastSilenceMs, timesUsual * usual);
    const answered = (others - memory.othersBefore) | 0;
    const least = isEjected || this.#onTrial.has(slot) ? leastUnansweredOnTrial : leastUnanswered;
    return isLong && unanswered >= least && answered >= Math.max(leastAnswers, unanswered);
  }

  /** A request more has hung, and so many in a row are no chance, or the replica was on trial. */
  #isSeriesNew(activity: ReplicaActivity, now: number): boolean {
    const { slot, hung } = activity;
    const judged = Math.min(hung, this.#judged.get(slot) ?? 0);
    this.#judged.set(slot, judged);
    return hung > judged && (this.#onTrial.has(slot) || this.#series.chanceOf(activity, now) <= leastChanceToPassOver);
  }
}
