import type { DialError } from '../shared/dial.ts';
import { noteFailedTry, type AccessRecord } from './access-record.ts';
import { recordArrival } from './arrival.ts';
import { Attempt } from './attempt.ts';
import type { BalancerContext } from './balancer-context.ts';
import type { ExchangeClient } from './exchange-client.ts';
import type { Trailers } from './http1/chunked-decoder.ts';
import type { Fault } from './http1/faults.ts';
import { isClientFault, type OwnResponse } from './http1/own-response.ts';
import type { RequestHead } from './http1/request-head.ts';
import type { ResponseHead } from './http1/response-head.ts';
import * as own from './own-responses.ts';
import type { ReplicaStream, ReplicaStreamUser } from './replica-stream.ts';
import type { Replica } from './replica.ts';
import { blame, blameForDial, judgeStatus, noteFailure } from './replica-verdict.ts';
import type { Waiting } from './waiting-room.ts';
import { ReplayBuffer } from './replay-buffer.ts';
import { decideRetry, isIdempotent, type FailedAttempt } from './retry-decision.ts';

/** Request body held while there is no connection yet; the client waits beyond it. */
const holdBytes = 262_144;
/** Of a WebSocket connection on which nothing moves: peers that care for it send pings. */
const tunnelIdleMs = 3_600_000;

/** Shared by the many requests that never try a second replica. */
const noReplicas: Replica[] = [];

/** The life of one request: admit, pick, send, relay, done. It may be cut short at any point from both sides. */
export class Exchange implements ReplicaStreamUser {
  readonly #context: BalancerContext;
  readonly #client: ExchangeClient;
  readonly #head: RequestHead;
  readonly #record: AccessRecord;
  readonly #replay = new ReplayBuffer();
  /** Replicas that this request is not sent to again. */
  #excluded: Replica[] = noReplicas;
  #timesSent = 0;
  /** The next attempt is one that the budget must allow. */
  #needsBudget = false;
  /** Made when it first has to wait. */
  #waiting: Waiting | undefined;
  /** Monotonic ms, while it waits. */
  #waitingSince: number | undefined;
  /** The answer when waiting was in vain. */
  #otherwise: OwnResponse = own.internalError;
  #phase: 'new' | 'connecting' | 'sent' | 'relaying' | 'done' = 'new';
  #requestTrailers: Trailers | undefined;
  #attempt: Attempt | undefined;
  /** The replica was heard of: from here on the request is never sent again. */
  #isAnswered = false;
  /** The client got part of the response: from here on there can be no other. */
  #isCommitted = false;
  /** The replica takes no more of the request for now. */
  #isUploadBlocked = false;
  #response: ResponseHead | undefined;
  #isResponseRead = false;
  #fault: Fault | undefined;

  constructor(context: BalancerContext, client: ExchangeClient, head: RequestHead) {
    this.#context = context;
    this.#client = client;
    this.#head = head;
    this.#record = recordArrival(context, client, head);
    context.counters.requests += 1;
    context.retryBudget.earn();
  }

  /** Whether the whole request was read. */
  get isRequestRead(): boolean {
    return this.#requestTrailers !== undefined;
  }

  // ---- What the client does

  /** A piece of the request's body. The buffer may be written over after `advance` has returned. */
  requestBody(bytes: Buffer, from: number, to: number): void {
    if (this.#phase === 'done') return;
    this.#record.bytesIn += to - from;
    const stream = this.#attempt?.stream;
    if (this.#isTooLarge(this.#record.bytesIn)) this.#answer(own.refusal('body_too_large'));
    else {
      if (!this.#isAnswered) this.#replay.add(bytes, from, to, stream !== undefined);
      if (this.#waiting !== undefined && !this.#context.waitingRoom.addBytes(this.#waiting, to - from)) {
        this.#answer(own.queueFull(this.#context.config));
        return;
      }
      stream?.body(bytes, from, to);
    }
  }

  /** The whole request was read; on a WebSocket connection, the client sends no more. */
  requestEnd(trailers: Trailers): void {
    if (this.#phase === 'done') return;
    this.#requestTrailers = trailers;
    this.#attempt?.stream?.end(trailers);
  }

  /** The request's body broke a rule. */
  requestFault(fault: Fault): void {
    this.#answer(own.refusal(fault));
  }

  /** One read of the client was worked on: begins the exchange, or sends on what was read. */
  advance(): void {
    const stream = this.#attempt?.stream;
    if (this.#phase === 'new') this.#admit();
    else if (stream !== undefined) this.#flushRequest(stream);
    else if (this.#phase === 'connecting' && this.#replay.bytes > holdBytes) this.#client.pauseReading();
  }

  /** The client takes bytes again. */
  clientDrained(): void {
    this.#progress();
    this.#attempt?.stream?.resume();
  }

  /** The client left: the replica need not go on. */
  clientGone(): void {
    if (this.#phase === 'done') return;
    this.#dropAttempt();
    this.#close('client_gone');
  }

  /** Too long without progress. `isClientStalled`: bytes wait for a client that does not read. */
  onDeadline(isClientStalled: boolean): void {
    if (this.#phase === 'done') return;
    if (isClientStalled || this.#isTunnel) {
      this.clientGone();
      this.#client.exchangeBroken();
    } else if (this.#phase !== 'relaying' && !this.isRequestRead && !this.#isUploadBlocked) this.#answer(own.requestTimeout);
    else this.#replicaSilent();
  }

  /** An unexpected error was thrown in the work on it. */
  abort(): void {
    this.#answer(own.internalError);
  }

  // ---- Admit, pick, send

  #admit(): void {
    if (this.#isTooLarge(this.#head.bodyLength)) this.#answer(own.refusal('body_too_large'));
    else if (this.#context.waitingRoom.mustWait) this.#wait(own.noReadyReplica(this.#context.config));
    else this.#pick(own.noReadyReplica(this.#context.config));
  }

  #isTooLarge(bytes: number): boolean {
    const { maxBodyBytes } = this.#context.config;
    return maxBodyBytes !== null && bytes > maxBodyBytes && !this.#isTunnel;
  }

  /** `otherwise`: the answer when there is no replica to try. `mustBeNew`: take no connection that served before. */
  #pick(otherwise: OwnResponse, mustBeNew = false): void {
    if (this.#needsBudget && !this.#context.retryBudget.spend(this.#context.clock.monotonic())) return this.#wait(otherwise);
    this.#needsBudget = false;
    const choice = this.#context.replicas.pick(this.#excluded);
    if (choice === undefined) return this.#wait(otherwise);
    const { replica, reason, load } = choice;
    this.#noteWaited();
    this.#record.attempts += 1;
    this.#record.replica = replica;
    this.#record.reason = reason;
    this.#record.loadAtChoice = load;
    const attempt = new Attempt(replica, this.#head);
    this.#attempt = attempt;
    const mayRunTwice = this.#context.config.retryUnsafe || isIdempotent(this.#head.method);
    const idle = mustBeNew ? undefined : attempt.takeIdle(mayRunTwice);
    if (idle !== undefined) return this.#send(idle);
    this.#phase = 'connecting';
    // Dialling has its own, shorter limit.
    this.#client.deadlineAt = Number.POSITIVE_INFINITY;
    return attempt.dial((error, stream) => this.#dialled(attempt, error, stream));
  }

  /** No replica can take it at this moment, or no retry is left: that may change within moments. */
  #wait(otherwise: OwnResponse): void {
    this.#otherwise = otherwise;
    const giveUp = (): void => this.#answer(own.waitedInVain(this.#context.config, this.#otherwise));
    this.#waiting ??= { giveUpAt: undefined, tryAgain: () => this.#lookAgain(), giveUp };
    const refusal = this.#context.waitingRoom.enter(this.#waiting, this.#replay.bytes);
    if (refusal !== undefined) return this.#answer(own.notQueued(this.#context.config, refusal, otherwise));
    this.#waitingSince ??= this.#context.clock.monotonic();
    this.#phase = 'connecting';
    // The waiting room has its own, shorter limit.
    this.#client.deadlineAt = Number.POSITIVE_INFINITY;
    return undefined;
  }

  #noteWaited(): void {
    if (this.#waitingSince === undefined) return;
    this.#record.queuedMs += this.#context.clock.monotonic() - this.#waitingSince;
    this.#waitingSince = undefined;
  }

  #lookAgain(): void {
    this.#excluded = noReplicas;
    this.#pick(this.#otherwise);
  }

  #dialled(attempt: Attempt, error: DialError | undefined, stream: ReplicaStream | undefined): void {
    try {
      if (stream !== undefined) return this.#send(stream);
      blameForDial(this.#context, attempt.replica, error);
      return this.#retry({ how: 'unreached', wasReused: false }, own.noReadyReplica(this.#context.config));
    } catch (unexpected) {
      this.#context.crashed(unexpected);
      return this.abort();
    }
  }

  #send(stream: ReplicaStream): void {
    this.#phase = 'sent';
    this.#timesSent += 1;
    this.#attempt?.noteSent();
    this.#record.sentMs = this.#elapsed();
    stream.begin(this, this.#head, this.#client.forwarded, this.#record.requestId);
    for (const bytes of this.#replay.parts) stream.body(bytes, 0, bytes.length);
    this.#replay.trim();
    if (this.#requestTrailers !== undefined) stream.end(this.#requestTrailers);
    this.#client.resumeReading();
    this.#flushRequest(stream);
  }

  #flushRequest(stream: ReplicaStream): void {
    this.#progress();
    this.#isUploadBlocked = !stream.flush();
    if (this.#isUploadBlocked) this.#client.pauseReading();
  }

  replicaDrained(): void {
    this.#progress();
    this.#isUploadBlocked = false;
    this.#client.resumeReading();
  }

  // ---- Relay

  responseInterim(head: ResponseHead): void {
    this.#noteAnswer();
    if (head.status === 100 || head.status === 103) this.#client.reply.interim(head);
  }

  responseHead(head: ResponseHead): void {
    this.#noteAnswer();
    this.#phase = 'relaying';
    this.#response = head;
    this.#record.status = head.status;
    if (head.isTunnel) this.#record.protocol = 'ws';
    this.#client.reply.head(head, this.#record.requestId, this.#ownLines());
    if (this.#attempt !== undefined) judgeStatus(this.#context, this.#attempt.replica, head);
  }

  #noteAnswer(): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    if (this.#waiting !== undefined) this.#context.waitingRoom.leave(this.#waiting);
    this.#replay.release();
    this.#record.firstByteMs = this.#elapsed();
    this.#attempt?.noteFirstByte(this.#record.firstByteMs - (this.#record.sentMs ?? 0));
  }

  #ownLines(): string {
    if (!this.#context.config.exposeReplica) return '';
    return `X-Svc-Replica: ${this.#record.replica?.id ?? ''}\r\nX-Svc-Attempts: ${this.#record.attempts}\r\n`;
  }

  body(bytes: Buffer, from: number, to: number): void {
    this.#record.bytesOut += to - from;
    this.#client.reply.body(bytes, from, to);
  }

  responseEnd(trailers: Trailers): void {
    this.#isResponseRead = true;
    this.#client.reply.end(trailers);
  }

  responseFault(fault: Fault): void {
    this.#fault = fault;
  }

  afterRead(): void {
    if (this.#fault !== undefined) return this.#replicaBroke(this.#fault);
    this.#progress();
    this.#isCommitted = this.#phase === 'relaying';
    this.#attempt?.replica.noteHeard();
    const isClientReady = this.#client.reply.flush();
    if (this.#isResponseRead) return this.#finish();
    return isClientReady ? undefined : this.#attempt?.stream?.pause();
  }

  #finish(): void {
    if (this.#response !== undefined) this.#attempt?.release(this.#response, this.isRequestRead);
    this.#dropAttempt();
    this.#close('ok');
    this.#client.exchangeDone();
  }

  // ---- What can go wrong

  streamLost(isRefused = false): void {
    const attempt = this.#attempt;
    if (attempt === undefined || this.#phase === 'done') return undefined;
    const lost = own.replicaLost(this.#context.config);
    if (isRefused && !this.#isAnswered) return this.#retry({ how: 'refused', wasReused: false }, lost);
    const wasReused = attempt.stream?.isReused === true;
    // The end of a connection that had been idle says nothing against the replica, nor does that of a WebSocket connection.
    if (!this.#isTunnel && (this.#isAnswered || !wasReused)) blame(this.#context, attempt.replica, 'reset');
    if (!this.#isAnswered) return this.#retry({ how: 'lost', wasReused }, lost);
    noteFailedTry(this.#record, 'lost');
    return this.#answer(lost);
  }

  #replicaSilent(): void {
    if (this.#attempt !== undefined) blame(this.#context, this.#attempt.replica, 'timeout');
    noteFailedTry(this.#record, 'timeout');
    this.#answer(own.firstByteTimeout(this.#context.config));
  }

  #replicaBroke(fault: Fault): void {
    if (this.#attempt !== undefined) noteFailure(this.#context, this.#attempt.replica, false);
    noteFailedTry(this.#record, 'protocol');
    this.#record.fault = fault;
    this.#answer(own.replicaBrokeProtocol(this.#context.config, fault));
  }

  #retry(failed: FailedAttempt, otherwise: OwnResponse): void {
    const decision = decideRetry(failed, {
      method: this.#head.method,
      timesSent: this.#timesSent,
      isReplayable: this.#replay.isComplete,
      retryUnsafe: this.#context.config.retryUnsafe,
    });
    const tried = this.#attempt?.replica;
    const why = failed.how === 'lost' && failed.wasReused ? 'idle_closed' : failed.how;
    noteFailedTry(this.#record, why);
    this.#dropAttempt();
    if (decision === 'give-up') return this.#answer(otherwise);
    this.#context.metrics.retry(why);
    if (decision === 'anew') return this.#pick(otherwise, true);
    // Connects cost a replica nothing, so only requests that were sent are held to the budget.
    this.#needsBudget = failed.how === 'lost';
    if (tried !== undefined) this.#excluded = [...this.#excluded, tried];
    return this.#pick(otherwise);
  }

  /** Answers in the replica's place; breaks off when the client has part of its answer already. */
  #answer(response: OwnResponse): void {
    if (this.#phase === 'done') return undefined;
    this.#dropAttempt();
    if (this.#isCommitted) {
      this.#close('truncated');
      return this.#client.exchangeBroken();
    }
    this.#client.reply.own(response, this.#record.requestId);
    this.#client.reply.flush();
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
    if (this.#waiting !== undefined) this.#context.waitingRoom.leave(this.#waiting);
    this.#noteWaited();
    this.#replay.release();
    if (outcome === 'unavailable' || outcome === 'truncated') this.#context.counters.errors += 1;
    this.#record.outcome = outcome;
    this.#record.totalMs = this.#elapsed();
    this.#context.log(this.#record);
  }

  /** Something moved: the limit counts anew. */
  #progress(): void {
    this.#client.deadlineAt = this.#context.deadlines.in(this.#patienceMs());
  }

  #patienceMs(): number {
    const { idleTimeoutMs, firstByteTimeoutMs } = this.#context.config;
    if (this.#isTunnel) return tunnelIdleMs;
    return this.#phase === 'sent' && this.isRequestRead ? firstByteTimeoutMs : idleTimeoutMs;
  }

  #elapsed(): number {
    return this.#context.clock.monotonic() - this.#record.startedAt;
  }
}
