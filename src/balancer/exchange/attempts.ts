import { recordFailedTry, type AccessRecord } from '../access-log/access-record.ts';
import type { BalancerContext } from './balancer-context.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { RetryReason } from '../metrics/label-values.ts';
import type { Choice } from '../replicas/replica-set.ts';
import type { Replica } from '../replicas/replica.ts';
import { decideRetry, isIdempotent, type FailedAttempt, type RetryDecision } from './retry-decision.ts';
import type { Upload } from './upload.ts';

/** Shared by the many requests that never try a second replica. */
const none: readonly Replica[] = [];

/** Whether a request keeps waiting at its replica, is sent to another one, or is answered by the balancer. */
type StallDecision = 'stays' | 'moves' | 'fails';

/** The replicas that one request has tried, and those that it may try next. */
export class Attempts {
  /** Running the request twice does no harm. */
  readonly mayRunTwice: boolean;
  readonly #context: BalancerContext;
  readonly #head: RequestHead;
  readonly #record: AccessRecord;
  /** Replicas that do not get this request again. */
  #excluded: readonly Replica[] = none;
  #timesSent = 0;
  /** The next attempt needs a retry from the budget. */
  #needsBudget = false;

  constructor(context: BalancerContext, head: RequestHead, record: AccessRecord) {
    this.#context = context;
    this.#head = head;
    this.#record = record;
    this.mayRunTwice = context.config.retryUnsafe || isIdempotent(head.method);
  }

  /**
   * Chooses a replica for the next attempt and counts the attempt there. Undefined when no replica is available now or
   * the budget has no retry left.
   */
  pick(): Choice | undefined {
    const { retryBudget, deadlines, replicas } = this.#context;
    if (this.#needsBudget && !retryBudget.spend(deadlines.machineNow)) return undefined;
    this.#needsBudget = false;
    const choice = replicas.pick(this.#head, this.#excluded);
    if (choice === undefined) return undefined;
    this.#record.attempts += 1;
    this.#record.replica = choice.replica;
    this.#record.reason = choice.reason;
    this.#record.loadAtChoice = choice.load;
    return choice;
  }

  /** The request, or its beginning, is being sent. */
  recordSent(): void {
    this.#timesSent += 1;
  }

  /** The request has waited: it may try all replicas again. */
  resetExcluded(): void {
    this.#excluded = none;
  }

  /** Decides what follows a failed attempt at `replica`, and records the failure. */
  failed(replica: Replica, failed: FailedAttempt, upload: Upload): RetryDecision {
    const decision = this.#decide(failed, upload);
    const reason = failed.how === 'lost' && failed.wasReused ? 'idle_closed' : failed.how;
    recordFailedTry(this.#record, reason);
    if (decision !== 'give-up') this.#context.metrics.retry(reason);
    if (decision === 'another') {
      this.#excluded = [...this.#excluded, replica];
      // A connect costs a replica nothing, so the budget limits only requests that were sent.
      this.#needsBudget = failed.how === 'lost';
    }
    return decision;
  }

  /**
   * Decides what happens to a request that was sent to `replica` and has no answer yet. Records it when the request
   * does not stay there.
   *
   * Moves away from a lost replica do not use the budget: a lost replica serves no requests, so the other replicas get
   * its load in any case.
   */
  decideStalled(replica: Replica, upload: Upload): StallDecision {
    const { retryBudget, deadlines, metrics, replicas } = this.#context;
    const { prospect } = replica;
    if (prospect === 'good') return 'stays';
    const mayMove = this.#decide({ how: 'lost', wasReused: false }, upload) === 'another';
    if (!mayMove && prospect !== 'none') return 'stays';
    // The replica may be busy rather than hung, and may then be the first to serve again.
    if (prospect === 'little' && replicas.serving === 0) return 'stays';
    if (prospect === 'doubtful' && !retryBudget.spend(deadlines.machineNow)) return 'stays';
    const reason: RetryReason = 'stalled';
    recordFailedTry(this.#record, reason);
    if (!mayMove) return 'fails';
    metrics.retry(reason);
    this.#excluded = [...this.#excluded, replica];
    return 'moves';
  }

  #decide(failed: FailedAttempt, upload: Upload): RetryDecision {
    const { isReplayable } = upload;
    const { retryUnsafe } = this.#context.config;
    return decideRetry(failed, { method: this.#head.method, timesSent: this.#timesSent, isReplayable, retryUnsafe });
  }
}
