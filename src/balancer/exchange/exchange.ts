import type { DialError } from '../../shared/system/dial.ts';
import { recordFailedTry, type AccessRecord } from '../access-log/access-record.ts';
import { recordArrival } from './request-record.ts';
import type { BalancerContext } from './balancer-context.ts';
import type { ExchangeClient, Reply } from './exchange-client.ts';
import type { Trailers } from '../http1/chunked-decoder.ts';
import type { Fault } from '../http1/faults.ts';
import { isClientFault, type BalancerResponse } from '../http1/balancer-response.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import { isGrpc } from '../http1/grpc-request.ts';
import * as own from './balancer-responses.ts';
import { ownLines } from './own-lines.ts';
import type { ReplicaStream, ReplicaStreamUser } from '../replicas/replica-stream.ts';
import { isOwnShortage } from '../replicas/dial-queue.ts';
import { judgeDialError, isEndOfIdle, judgeEnd, judgeFailure, judgeHead, judgeStalled } from './replica-verdict.ts';
import { Attempt, Attempts, expectedWaitNow, QueuedRequest, type QueuedRequestListener } from './attempts.ts';
import type { FailedAttempt } from './retry-decision.ts';
import { isTooLarge, Upload } from './upload.ts';
import { continuesComments, WaitComments, wantsComments } from './wait-comments.ts';

/** Limit for a WebSocket connection without traffic. Peers keep it open by pings. */
const tunnelIdleMs = 3_600_000;
/** How often a request without a response checks whether its replica is lost. */
const replicaCheckIntervalMs = 500;

/** One request from arrival to end: admit, pick a replica, send, relay. Client or replica may end it at any point. */
export class Exchange implements ReplicaStreamUser, QueuedRequestListener {
  readonly #context: BalancerContext;
  readonly #client: ExchangeClient;
  #reply: Reply;
  readonly #head: RequestHead;
  readonly #record: AccessRecord;
  readonly #upload: Upload;
  readonly #attempts: Attempts;
  #queued: QueuedRequest | undefined;
  #comments: WaitComments | undefined;
  #phase: 'new' | 'connecting' | 'sent' | 'relaying' | 'done' = 'new';
  #attempt: Attempt | undefined;
  /** The response has begun: the balancer never sends the request again. */
  #isAnswered = false;
  /** An interim response came: a replica has the request, and the client may send the body. */
  #isAcknowledged = false;
  /** The client got part of the response: no other response can follow. */
  #isCommitted = false;
  /** Deadline of the response's first byte, monotonic ms. Infinity until the whole request was sent. */
  #answerDueAt = Number.POSITIVE_INFINITY;
  /** Deadline of the next progress, monotonic ms. After it the exchange fails. */
  #dueAt = Number.NEGATIVE_INFINITY;
  /** When the replica is checked next, monotonic ms. Progress does not postpone it. */
  #checkAt = Number.NEGATIVE_INFINITY;
  #response: ResponseHead | undefined;
  #isResponseRead = false;
  #fault: Fault | undefined;
  /** Why the client gets nothing of the response: see `isEndOfIdle`, and `continuesComments`. */
  #withheld: 'idle-end' | 'unfit' | undefined;

  constructor(context: BalancerContext, client: ExchangeClient, head: RequestHead) {
    this.#context = context;
    this.#client = client;
    this.#reply = client.reply;
    this.#head = head;
    this.#upload = new Upload(client, context.deadlines);
    this.#record = recordArrival(context, client, head);
    this.#attempts = new Attempts(context, head, this.#record);
    context.counters.requests += 1;
    context.retryBudget.earn();
  }

  get isRequestRead(): boolean {
    return this.#upload.isRead;
  }

  // ---- Events from the client

  /** The buffer may be overwritten after `advance` has returned. */
  requestBody(bytes: Buffer, from: number, to: number): void {
    if (this.#phase === 'done') return;
    const stream = this.#attempt?.stream;
    const isHeld = stream === undefined || (!this.#isAnswered && this.#attempts.mayRunTwice);
    this.#upload.received(bytes, from, to, stream, isHeld);
    if (!this.#isTunnel && isTooLarge(this.#context.config, this.#upload.bytes)) this.#answer(own.refusal('body_too_large'));
    else if (this.#queued?.addBytes(to - from) === false) this.#answer(own.queueFull(this.#context.config, expectedWaitNow(this.#context)));
  }

  /** The whole request was read. On a WebSocket connection: the client sends no more. */
  requestEnd(trailers: Trailers): void {
    if (this.#phase !== 'done') this.#upload.ended(trailers, this.#attempt?.stream);
  }

  requestFault(fault: Fault): void {
    this.#answer(own.refusal(fault));
  }

  /** The events of one read from the client are complete: begins the exchange, or sends what was read. */
  advance(): void {
    if (!this.isRequestRead && this.#mustKeepPace) this.#upload.watchPace();
    if (this.#phase === 'new') this.#next('arrival', own.noReadyReplica(this.#context.config));
    else if (this.#attempt?.stream !== undefined) this.#flushRequest(this.#attempt.stream);
    if (this.#phase !== 'done') this.#upload.settle(this.#attempt?.stream !== undefined);
  }

  /** No minimum rate while a client waits for 100 (Continue), nor after the response began. */
  get #mustKeepPace(): boolean {
    return this.#response === undefined && (this.#isAcknowledged || !this.#head.expectsContinue) && !isGrpc(this.#head);
  }

  clientDrained(): void {
    // A queued request keeps the time of its next comment.
    if (this.#attempt !== undefined) this.#progress();
    this.#attempt?.stream?.resume();
  }

  /** The client disconnected: the replica can stop its work. */
  clientGone(): void {
    if (this.#phase === 'done') return;
    this.#attempt?.recordGivenUp(this.#elapsed());
    this.#dropAttempt();
    this.#close('client_gone');
  }

  /** `deadlineAt` has passed. `isClientStalled`: the client does not read bytes that wait for it. */
  onDeadline(isClientStalled: boolean): void {
    if (this.#phase === 'done') return;
    if (this.#comments !== undefined && this.#attempt === undefined) return this.#comment(isClientStalled);
    if (this.#context.deadlines.now < this.#dueAt) this.#moveWhenLost();
    else if (isClientStalled || this.#isTunnel) {
      this.clientGone();
      this.#client.exchangeBroken();
    } else if (this.#phase !== 'relaying' && !this.isRequestRead && !this.#upload.isBlocked) this.#answer(own.requestTimeout);
    else this.#replicaSilent();
  }

  abort(): void {
    this.#answer(own.internalError);
  }

  // ---- The loop of attempts

  /**
   * One round: admits the request or decides about a retry, picks a replica or queues the request, and connects. Rounds
   * end when a replica responds or the balancer answers. `otherwise`: the answer when no attempt follows.
   */
  #next(after: 'arrival' | 'queue' | 'move' | FailedAttempt, otherwise: BalancerResponse): void {
    if (after === 'arrival' && isTooLarge(this.#context.config, this.#head.bodyLength)) return this.#answer(own.refusal('body_too_large'));
    const last = this.#attempt;
    const hasFailed = typeof after === 'object' && last !== undefined;
    const decision = hasFailed ? this.#attempts.failed(last.replica, after, this.#upload) : 'another';
    this.#dropAttempt();
    if (decision === 'give-up') return this.#answer(otherwise);
    if (after === 'queue') this.#attempts.resetExcluded();
    const isBehindOthers = after === 'arrival' && this.#context.requestQueue.mustWait;
    const choice = isBehindOthers ? undefined : this.#attempts.pick();
    if (choice === undefined || choice === 'full') {
      // No replica can take the request now, or the budget has no retry left: both may change soon.
      this.#queued ??= new QueuedRequest(this.#context, this.#record, this);
      const refusal = this.#queued.enter(otherwise, this.#upload.held, choice === 'full');
      if (refusal !== undefined) return this.#answer(refusal);
      this.#pause();
      return wantsComments(this.#head) ? this.#comment(false) : undefined;
    }
    this.#queued?.pause();

    const attempt = new Attempt(choice.replica, this.#head);
    this.#attempt = attempt;
    const idle = decision === 'new-connection' ? undefined : attempt.takeIdle(this.#attempts.mayRunTwice, after === 'queue');
    if (idle !== undefined) return this.#send(idle);
    this.#pause();
    return attempt.dial((error, stream) => this.#dialled(attempt, error, stream));
  }

  /** Reports the wait to a client that asked for it, unless it does not read, and again after a while. */
  #comment(isClientStalled: boolean): void {
    this.#comments ??= new WaitComments(this.#context, this.#client, this.#record.requestId);
    this.#reply = this.#comments;
    this.#comments.write(isClientStalled);
  }

  onRetry(otherwise: BalancerResponse): void {
    this.#next('queue', otherwise);
  }

  onQueueTimeout(answer: BalancerResponse): void {
    this.#answer(answer);
  }

  #dialled(attempt: Attempt, error: DialError | undefined, stream: ReplicaStream | undefined): void {
    try {
      if (stream !== undefined) return this.#send(stream);
      judgeDialError(this.#context, attempt, error);
      const otherwise = (isOwnShortage(error) ? own.overloaded : own.noReadyReplica)(this.#context.config);
      return this.#next({ how: 'unreached', wasReused: false }, otherwise);
    } catch (unexpected) {
      this.#context.crashed(unexpected);
      return this.abort();
    }
  }

  /** The request sends nothing while queued or connecting. The request queue and the dial have their own limits. */
  #pause(): void {
    this.#phase = 'connecting';
    this.#upload.rest();
    this.#client.deadlineAt = Number.POSITIVE_INFINITY;
  }

  #send(stream: ReplicaStream): void {
    this.#phase = 'sent';
    this.#attempts.recordSent();
    this.#setDeadline(this.#context.deadlines.in(replicaCheckIntervalMs));
    this.#record.sentMs = this.#elapsed();
    stream.begin(this, this.#head, this.#client.forwarded, this.#record.requestId);
    this.#upload.sendTo(stream, this.#attempts.mayRunTwice || stream.mayRefuse);
    this.#sent();
  }

  #flushRequest(stream: ReplicaStream): void {
    this.#upload.flush(stream);
    this.#sent();
  }

  /** After the last part of the request, the time limit for the response's first byte starts. */
  #sent(): void {
    const { deadlines, config } = this.#context;
    if (this.#phase === 'sent' && this.isRequestRead) this.#answerDueAt = deadlines.in(config.firstByteTimeoutMs);
    this.#awaitReplica();
    this.#progress();
  }

  /** Records that the replica must act now, unless the client must first send more of its body. */
  #awaitReplica(): void {
    const mustSendContinue = this.#head.expectsContinue && !this.#isAcknowledged;
    if (this.isRequestRead || this.#upload.isBlocked || mustSendContinue) this.#attempt?.awaitReplica(this.#elapsed());
  }

  replicaDrained(): void {
    this.#upload.goOn();
    this.#attempt?.recordProgress();
    this.#sent();
  }

  // ---- Relay

  responseInterim(head: ResponseHead): void {
    this.#isAcknowledged = true;
    this.#queued?.end();
    this.#attempt?.recordProgress();
    this.#awaitReplica();
    if (head.status === 100 || head.status === 103) this.#reply.interim(head);
  }

  responseHead(head: ResponseHead): void {
    const attempt = this.#attempt;
    const mayResend = this.#attempts.mayRunTwice && this.#upload.isReplayable && !this.#isAcknowledged;
    this.#withheld = mayResend && attempt !== undefined && isEndOfIdle(attempt, head) ? 'idle-end' : undefined;
    if (this.#withheld !== undefined) return;
    this.#isAnswered = true;
    this.#queued?.end();
    this.#record.firstByteMs = this.#elapsed();
    attempt?.recordFirstByte(this.#record.firstByteMs);
    this.#phase = 'relaying';
    this.#response = head;
    this.#upload.release();
    this.#record.status = head.status;
    if (head.isTunnel) this.#record.protocol = 'ws';
    if (this.#comments !== undefined && !continuesComments(head)) this.#withheld = 'unfit';
    this.#reply.head(head, this.#record.requestId, ownLines(this.#context, this.#record, attempt?.replica, head));
    if (attempt !== undefined) judgeHead(this.#context, attempt, head, this.#record.firstByteMs - (this.#record.sentMs ?? 0));
  }

  body(bytes: Buffer, from: number, to: number): void {
    if (this.#withheld !== undefined) return;
    this.#record.bytesOut += to - from;
    this.#reply.body(bytes, from, to);
  }

  responseEnd(trailers: Trailers): void {
    if (this.#withheld !== undefined) return;
    this.#isResponseRead = true;
    if (this.#attempt !== undefined && this.#response !== undefined)
      judgeEnd(this.#context, this.#attempt, this.#head, this.#response, trailers);
    this.#reply.end(trailers);
  }

  responseFault(fault: Fault): void {
    this.#fault = fault;
  }

  afterRead(): void {
    if (this.#withheld === 'idle-end') return this.streamLost();
    if (this.#fault !== undefined) return this.#replicaBroke(this.#fault);
    if (this.#withheld === 'unfit') return this.#answer(own.unfitAfterComments(this.#record.status));
    this.#progress();
    this.#isCommitted = this.#phase === 'relaying';
    this.#attempt?.replica.markSeen();
    const isClientReady = this.#reply.flush();
    if (this.#isResponseRead) return this.#finish();
    return isClientReady ? undefined : this.#attempt?.stream?.pause();
  }

  #finish(): void {
    if (this.#response !== undefined) this.#attempt?.release(this.#response, this.isRequestRead);
    this.#dropAttempt();
    this.#close('ok');
    this.#client.exchangeDone();
  }

  // ---- Failures

  streamLost(isRefused = false): void {
    const attempt = this.#attempt;
    if (attempt === undefined || this.#phase === 'done') return undefined;
    const lost = own.replicaLost(this.#context.config);
    if (isRefused && !this.#isAnswered) return this.#next({ how: 'refused', wasReused: false }, lost);
    const wasReused = attempt.stream?.isReused === true && !this.#isAcknowledged;
    // A replica may close an idle or a WebSocket connection: neither is a failure of the replica.
    if (!this.#isTunnel && (this.#isAnswered || !wasReused)) judgeFailure(this.#context, attempt, 'reset');
    if (!this.#isAnswered) return this.#next({ how: 'lost', wasReused }, lost);
    recordFailedTry(this.#record, 'lost');
    return this.#answer(lost);
  }

  #replicaSilent(): void {
    if (this.#attempt !== undefined) judgeFailure(this.#context, this.#attempt, 'timeout');
    recordFailedTry(this.#record, 'timeout');
    const { config } = this.#context;
    this.#answer(this.isRequestRead ? own.firstByteTimeout(config) : own.uploadTimeout(config));
  }

  #replicaBroke(fault: Fault): void {
    if (this.#attempt !== undefined) judgeFailure(this.#context, this.#attempt, undefined);
    recordFailedTry(this.#record, 'protocol');
    this.#record.fault = fault;
    this.#answer(own.replicaBrokeProtocol(this.#context.config, fault));
  }

  /** For a request without a response: moves it away from a lost replica, fails it if a retry is unsafe, or waits. */
  #moveWhenLost(): void {
    const attempt = this.#isAnswered ? undefined : this.#attempt;
    const decision = attempt === undefined ? 'stays' : this.#attempts.decideStalled(attempt, this.#upload, this.#elapsed());
    if (decision === 'stays') return this.#setDeadline(this.#context.deadlines.in(replicaCheckIntervalMs));
    if (attempt !== undefined) judgeStalled(this.#context, attempt);
    const unresponsive = own.replicaUnresponsive(this.#context.config);
    return decision === 'fails' ? this.#answer(unresponsive) : this.#next('move', unresponsive);
  }

  /** Answers instead of the replica. Breaks off a response of which the client already has a part. */
  #answer(response: BalancerResponse): void {
    if (this.#phase === 'done') return undefined;
    this.#dropAttempt();
    if (this.#isCommitted) {
      this.#close('truncated');
      return this.#client.exchangeBroken();
    }
    this.#reply.own(response, this.#record.requestId);
    this.#reply.flush();
    this.#record.status = response.status;
    this.#record.code = response.code;
    this.#close(isClientFault(response.status) ? 'refused' : 'unavailable');
    return this.#client.exchangeDone();
  }

  // ---- Bookkeeping

  get #isTunnel(): boolean {
    return this.#response?.isTunnel === true;
  }

  #dropAttempt(): void {
    this.#attempt?.end();
    this.#attempt = undefined;
  }

  #close(outcome: AccessRecord['outcome']): void {
    this.#phase = 'done';
    this.#queued?.end();
    this.#upload.release();
    this.#record.bytesIn = this.#upload.bytes;
    if (outcome === 'unavailable' || outcome === 'truncated') this.#context.counters.errors += 1;
    this.#record.outcome = outcome;
    this.#record.totalMs = this.#elapsed();
    this.#context.requestEnded(this.#record);
  }

  #progress(): void {
    const { deadlines, config } = this.#context;
    if (this.#isTunnel) this.#dueAt = deadlines.in(tunnelIdleMs);
    else if (this.#phase === 'sent' && this.isRequestRead) this.#dueAt = this.#answerDueAt;
    else this.#dueAt = Math.min(deadlines.in(config.idleTimeoutMs), this.#upload.tooSlowAt);
    this.#setDeadline(this.#checkAt);
  }

  #setDeadline(checkAt: number): void {
    this.#checkAt = checkAt;
    this.#client.deadlineAt = this.#phase === 'sent' ? Math.min(this.#dueAt, checkAt) : this.#dueAt;
  }

  #elapsed(): number {
    return this.#context.clock.monotonic() - this.#record.startedAt;
  }
}
