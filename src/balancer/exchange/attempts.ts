import { waitLimitsMs } from '../../domain/outcomes.ts';
import type { CancelDial } from '../../shared/system/dial.ts';
import { recordFailedTry, type AccessRecord } from '../access-log/access-record.ts';
import type { BalancerContext } from './balancer-context.ts';
import type { BalancerResponse } from '../http1/balancer-response.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import type { RetryReason } from '../metrics/label-values.ts';
import * as own from './balancer-responses.ts';
import type { Choice } from '../replicas/replica-set.ts';
import type { Replica } from '../replicas/replica.ts';
import type { ReplicaStream } from '../replicas/replica-stream.ts';
import type { OnDialled } from '../replicas/replica-streams.ts';
import type { QueueEntry } from './request-queue.ts';
import { decideRetry, isIdempotent, type FailedAttempt, type RetryDecision } from './retry-decision.ts';
import type { Upload } from './upload.ts';

const none: readonly Replica[] = [];

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
  /** The version that the request should get; undefined until it got a replica, and where versions do not matter. */
  #version: number | undefined;
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
   * Chooses a replica and counts the attempt there. Undefined when no replica is available or the budget is empty; `full`:
   * see `ReplicaSet.pick`.
   */
  pick(): Choice | 'full' | undefined {
    const { retryBudget, deadlines, replicas } = this.#context;
    if (this.#needsBudget && !retryBudget.spend(deadlines.machineNow)) return undefined;
    this.#needsBudget = false;
    const choice = replicas.pick(this.#head, this.#excluded, this.#version);
    if (choice === undefined || choice === 'full') return choice;
    this.#version = choice.version;
    this.#record.attempts += 1;
    this.#record.replica = choice.replica;
    this.#record.reason = choice.reason;
    this.#record.loadAtChoice = choice.load;
    return choice;
  }

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
   * Decides about a request that has no answer, and counts its wait. Only moves away from a doubtful replica use the
   * budget: a lost replica serves no requests, so its load moves anyway. `at`: ms since the request's arrival.
   */
  decideStalled(attempt: Attempt, upload: Upload, at: number): StallDecision {
    const { retryBudget, deadlines, metrics, replicas } = this.#context;
    countWaits(this.#context, attempt, at - (this.#record.sentMs ?? at));
    const { replica } = attempt;
    const { prospect } = replica;
    if (prospect === 'good') return 'stays';
    const mayMove = this.#decide({ how: 'lost', wasReused: false }, upload) === 'another';
    if (!mayMove && prospect !== 'none') return 'stays';
    // The replica may be busy rather than hung, and may be the first to serve again.
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

/** `busy`: the replica sent `Retry-After`. `failed`: a 5xx, which `judgeHead` has already counted. */
type HeadVerdict = 'good' | 'busy' | 'failed';

/** One attempt of a request at one replica. Its choice added it to the replica's load; only `end` removes it. */
export class Attempt {
  readonly replica: Replica;
  stream: ReplicaStream | undefined;
  verdict: HeadVerdict | undefined;
  /** Counted as an error; see `judgeFailure`. */
  hasErred = false;
  /** How many of `waitLimitsMs` it outlasted; see `countWaits`. */
  waits = 0;
  readonly #head: RequestHead;
  #cancelDial: CancelDial | undefined;
  #isEnded = false;
  /** When the current wait for the replica began, ms since the arrival; undefined while the replica owes nothing. */
  #awaitedSince: number | undefined;
  #isAnswered = false;

  constructor(replica: Replica, head: RequestHead) {
    this.replica = replica;
    this.#head = head;
  }

  /**
   * Takes an open connection of the replica; undefined when none may carry the request. A request from the queue takes
   * none while an earlier one uses a fresh connection, which the replica may read later than an idle one.
   */
  takeIdle(mayRunTwice: boolean, isFromQueue: boolean): ReplicaStream | undefined {
    if (isFromQueue && this.replica.streams.hasFresh) return undefined;
    this.stream = this.replica.streams.take(this.#head, mayRunTwice);
    return this.stream;
  }

  /** Opens a new connection. Calls `done` later, but never after `end`. */
  dial(done: OnDialled): void {
    this.#cancelDial = this.replica.streams.dial(this.#head, (error, stream) => {
      this.#cancelDial = undefined;
      this.stream = stream;
      done(error, stream);
    });
  }

  /**
   * The replica must act from now on. Not called while the client must send more: silence then proves nothing about the
   * replica. `at`: ms since the request's arrival.
   */
  awaitReplica(at: number): void {
    if (this.#awaitedSince !== undefined || this.#isAnswered) return;
    this.#awaitedSince = at;
    this.replica.recordAwaited();
  }

  /** The replica took more of the request, or sent an interim response. */
  recordProgress(): void {
    if (this.#awaitedSince === undefined) return;
    this.#awaitedSince = undefined;
    this.replica.recordUnanswered();
    this.replica.markSeen();
  }

  /** `at`: ms since the request's arrival. */
  recordFirstByte(at: number): void {
    this.#isAnswered = true;
    if (this.#awaitedSince !== undefined) this.replica.recordFirstByte(at - this.#awaitedSince);
    this.#awaitedSince = undefined;
  }

  /** The client disconnected. `at`: ms since the request's arrival. */
  recordGivenUp(at: number): void {
    if (this.#awaitedSince !== undefined) this.replica.recordGivenUp(at - this.#awaitedSince);
  }

  release(response: ResponseHead, isRequestSent: boolean): void {
    this.stream?.release(response, isRequestSent);
    this.stream = undefined;
  }

  /** Ends the attempt and destroys a stream that was not released. Later calls do nothing. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#cancelDial?.();
    this.stream?.destroy();
    this.stream = undefined;
    if (this.#awaitedSince !== undefined) this.replica.recordUnanswered();
    this.replica.endAttempt();
  }
}

/** Counts the ages that the attempt reached without a first byte. `ms`: since the sending of the request. */
export function countWaits({ metrics, replicas }: BalancerContext, attempt: Attempt, ms: number): void {
  for (let limit = waitLimitsMs[attempt.waits]; limit !== undefined && limit < ms; limit = waitLimitsMs[attempt.waits]) {
    // An age that it reached before there were versions is none to compare.
    if (replicas.hasVersions) metrics.waited(attempt.replica.slot, attempt.waits);
    attempt.waits += 1;
  }
}

/** What happens to a request in the queue. */
export interface QueuedRequestListener {
  /** A replica may be available now. `otherwise`: the answer when none is. */
  onRetry(otherwise: BalancerResponse): void;
  onQueueTimeout(answer: BalancerResponse): void;
}

/** What a client can expect now, while no replica serves. */
export function expectedWaitNow({ requestQueue, replicas, clock }: BalancerContext): own.ExpectedWait | undefined {
  return replicas.serving > 0 ? undefined : own.expectedWait(requestQueue.expected, clock.now());
}

/** The time of one request in the queue, which it may enter several times. */
export class QueuedRequest implements QueueEntry {
  giveUpAt: number | undefined;
  readonly #context: BalancerContext;
  readonly #record: AccessRecord;
  readonly #listener: QueuedRequestListener;
  /** Monotonic ms, while it waits. */
  #since: number | undefined;
  #otherwise: BalancerResponse = own.internalError;
  /** It waits because each replica is full. */
  #lacksRoom = false;

  constructor(context: BalancerContext, record: AccessRecord, listener: QueuedRequestListener) {
    this.#context = context;
    this.#record = record;
    this.#listener = listener;
  }

  /**
   * Begins to wait, or returns the answer at once. `otherwise`: the answer when no replica is expected. `lacksRoom`: each
   * replica is full.
   */
  enter(otherwise: BalancerResponse, heldBytes: number, lacksRoom: boolean): BalancerResponse | undefined {
    const { requestQueue, config, clock } = this.#context;
    this.#otherwise = otherwise;
    this.#lacksRoom = lacksRoom || requestQueue.lacksRoom;
    const refusal = requestQueue.enter(this, heldBytes, lacksRoom);
    if (refusal !== undefined) return own.queueRefusalResponse(config, refusal, this.#answer, expectedWaitNow(this.#context));
    this.#since ??= clock.monotonic();
    return undefined;
  }

  /** False when the queue has no room for them. */
  addBytes(bytes: number): boolean {
    return this.#context.requestQueue.addBytes(this, bytes);
  }

  /** Ends the current wait and records its duration. */
  pause(): void {
    if (this.#since === undefined) return;
    this.#record.queuedMs += this.#context.clock.monotonic() - this.#since;
    this.#since = undefined;
  }

  end(): void {
    this.pause();
    this.#context.requestQueue.finish(this);
  }

  tryAgain(): void {
    this.#listener.onRetry(this.#otherwise);
  }

  get #answer(): BalancerResponse {
    const { config, replicas } = this.#context;
    return this.#lacksRoom && replicas.serving > 0 ? own.replicasFull(config) : this.#otherwise;
  }

  giveUp(): void {
    this.#listener.onQueueTimeout(own.queueTimeout(this.#context.config, this.#answer, expectedWaitNow(this.#context)));
  }
}
