/** What is known of one serving replica at a moment. Times are monotonic ms. */
export interface ReplicaActivity {
  readonly slot: number;
  /** Requests that were sent there and of which no byte came back yet. */
  readonly unanswered: number;
  /** Since when not a byte came from there although something was to come; of no meaning while nothing is unanswered. */
  readonly silentSince: number;
  /** First bytes that came from there so far; begins anew after 2^32. */
  readonly answers: number;
  /** How long it usually took from a request to the first byte, ms; 0 while nothing is known. */
  readonly usualMs: number;
  /** It is out of rotation already, for failures. */
  readonly isEjected: boolean;
  /** It was found silent, and not a byte came since. */
  readonly isStalled: boolean;
}

/** Silence that is not worth noticing, whatever the others do. */
const leastSilenceMs = 1_000;
/** How many times longer than usual for the others. */
const timesUsual = 4;
/** A single request may be a hard one, unless it is the one with which a silent replica is given another try. */
const leastUnanswered = 2;
const leastUnansweredOnTrial = 1;
/** Answers of others in that time: with fewer, nobody can tell what is normal. */
const leastAnswers = 3;
/** For how long a replica is passed over that has nothing left to answer, as its clients went away: then it is given another try. */
const restMs = 10_000;

interface Memory {
  silentSince: number;
  /** Answers of all other replicas when the silence began. */
  othersBefore: number;
  stalledAt: number | undefined;
}

/**
 * Finds replicas that accept requests and answer nothing, long before the limit for the first byte, which must be long enough for the slowest
 * model. What counts is the comparison: a replica with several requests sits silent for far longer than the others need, while those go on
 * answering. It is only passed over, never more than half of the replicas are, and its first byte ends that, so a replica that was merely slow loses
 * nothing but a share of new requests while it was slow. Pure: time is passed in.
 */
export class StallDetector {
  readonly #memories = new Map<number, Memory>();
  /** Replicas that were given another try and have not answered since, by slot: how many answers there were then. */
  readonly #onTrial = new Map<number, number>();

  /** The slots of replicas to pass over from now on, those silent for longest first. To be called several times a second. */
  judge(all: readonly ReplicaActivity[], now: number): readonly number[] {
    const total = all.reduce((sum, { answers }) => (sum + answers) | 0, 0);
    const suspects = all.filter((activity) => this.#isSuspect(activity, all, (total - activity.answers) | 0, now));
    const room = Math.max(0, Math.floor(all.length / 2) - all.filter(({ isEjected }) => isEjected).length);
    const stalled = suspects.toSorted((a, b) => a.silentSince - b.silentSince).slice(0, room);
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
    if (isEjected) return false;
    if (isStalled && memory.stalledAt !== undefined) return true;
    const usual = Math.max(0, ...all.map((other) => (other.slot === slot || other.isStalled ? 0 : other.usualMs)));
    const isLong = now - silentSince >= Math.max(leastSilenceMs, timesUsual * usual);
    const answered = (others - memory.othersBefore) | 0;
    const least = this.#onTrial.has(slot) ? leastUnansweredOnTrial : leastUnanswered;
    return isLong && unanswered >= least && answered >= Math.max(leastAnswers, unanswered);
  }
}
