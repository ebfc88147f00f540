import { noteFailedTry, type AccessRecord } from '../access-log/access-record.ts';
import type { BalancerContext } from './balancer-context.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { RetryReason } from '../metrics/label-values.ts';
import type { Choice } from '../replicas/replica-set.ts';
import type { Replica } from '../replicas/replica.ts';
import { decideRetry, isIdempotent, type FailedAttempt, type RetryDecision } from './retry-decision.ts';
import type { Upload } from './upload.ts';

/** Shared by the many requests that never try a second replica. */
const none: readonly Replica[] = [];

/** Where one request has been tried so far, and where it may be tried next. */
export class Attempts {
  /** Running the request twice does no harm. */
  readonly mayRunTwice: boolean;
  readonly #context: BalancerContext;
  readonly #head: RequestHead;
  readonly #record: AccessRecord;
  /** Replicas that it is not sent to again. */
  #excluded: readonly Replica[] = none;
  #timesSent = 0;
  /** The next attempt is one that the budget must allow. */
  #needsBudget = false;

  constructor(context: BalancerContext, head: RequestHead, record: AccessRecord) {
    this.#context = context;
    this.#head = head;
    this.#record = record;
    this.mayRunTwice = context.config.retryUnsafe || isIdempotent(head.method);
  }

  /** Chooses a replica for the next attempt and counts it there; undefined when there is none, or no retry left in the budget, at this moment. */
  pick(): Choice | undefined {
    const { retryBudget, deadlines, replicas } = this.#context;
    if (this.#needsBudget && !retryBudget.spend(deadlines.machineNow)) return undefined;
    this.#needsBudget = false;
    const choice = replicas.pick(this.#excluded);
    if (choice === undefined) return undefined;
    this.#record.attempts += 1;
    this.#record.replica = choice.replica;
    this.#record.reason = choice.reason;
    this.#record.loadAtChoice = choice.load;
    return choice;
  }

  /** The request, or the beginning of it, is being sent. */
  noteSent(): void {
    this.#timesSent += 1;
  }

  /** All replicas may be tried anew: the request has waited. */
  forgive(): void {
    this.#excluded = none;
  }

  /** What to do after an attempt at `replica` that came to nothing; puts it on record. */
  failed(replica: Replica, failed: FailedAttempt, upload: Upload): RetryDecision {
    const decision = this.#decide(failed, upload);
    const why = failed.how === 'lost' && failed.wasReused ? 'idle_closed' : failed.how;
    noteFailedTry(this.#record, why);
    if (decision !== 'give-up') this.#context.metrics.retry(why);
    if (decision === 'elsewhere') {
      this.#excluded = [...this.#excluded, replica];
      // Connects cost a replica nothing, so only requests that were sent are held to the budget.
      this.#needsBudget = failed.how === 'lost';
    }
    return decision;
  }

  /** Whether to leave a replica that was sent the request, is found to answer nobody, and has said nothing yet; puts it on record. */
  leaves(replica: Replica, upload: Upload): boolean {
    const { retryBudget, deadlines, metrics } = this.#context;
    if (!replica.isStalled || this.#decide({ how: 'lost', wasReused: false }, upload) !== 'elsewhere') return false;
    if (!retryBudget.spend(deadlines.machineNow)) return false;
    const why: RetryReason = 'stalled';
    noteFailedTry(this.#record, why);
    metrics.retry(why);
    this.#excluded = [...this.#excluded, replica];
    return true;
  }

  #decide(failed: FailedAttempt, upload: Upload): RetryDecision {
    const { isReplayable } = upload;
    const { retryUnsafe } = this.#context.config;
    return decideRetry(failed, { method: this.#head.method, timesSent: this.#timesSent, isReplayable, retryUnsafe });
  }
}
