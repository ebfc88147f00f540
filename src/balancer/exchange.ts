import type { DialError } from '../shared/dial.ts';
import { openRecord, withoutQuery, type AccessRecord } from './access-record.ts';
import { Attempt } from './attempt.ts';
import type { BalancerContext } from './balancer-context.ts';
import type { ExchangeClient } from './exchange-client.ts';
import { chunkedLength } from './http1/body-length.ts';
import type { Trailers } from './http1/chunked-decoder.ts';
import type { Fault } from './http1/faults.ts';
import { forwardRequestHead, givenRequestId } from './http1/forward-request.ts';
import * as forward from './http1/forward-response.ts';
import { isClientFault, writeOwnResponse, type OwnResponse } from './http1/own-response.ts';
import type { RequestHead } from './http1/request-head.ts';
import type { ResponseHead } from './http1/response-head.ts';
import { LF } from './http1/octets.ts';
import * as own from './own-responses.ts';
import type { ReplicaConnection, ReplicaConnectionUser } from './replica-connection.ts';
import type { Replica } from './replica.ts';
import { blame, blameForDial, judgeStatus } from './replica-verdict.ts';
import type { Waiting } from './waiting-room.ts';
import { ReplayBuffer } from './replay-buffer.ts';
import { decideRetry, isIdempotent, type FailedAttempt } from './retry-decision.ts';

/** Connections idle for longer are not trusted with a request that may not be sent twice: the replica may be closing them at this moment. */
const maxIdleForUnsafeMs = 1_000;
/** Request body held while there is no connection yet; the client waits beyond it. */
const holdBytes = 262_144;

/** The life of one request: admit, pick, send, relay, done. It may be cut short at any point from both sides. */
export class Exchange implements ReplicaConnectionUser {
  readonly #context: BalancerContext;
  readonly #client: ExchangeClient;
  readonly #head: RequestHead;
  readonly #record: AccessRecord;
  readonly #replay = new ReplayBuffer();
  readonly #excluded: Replica[] = [];
  #timesSent = 0;
  /** The next attempt is one that the budget must allow. */
  #needsBudget = false;
  /** Made when it first has to wait. */
  #waiting: Waiting | undefined;
  /** The answer when waiting was in vain. */
  #otherwise: OwnResponse = own.internalError;
  #phase: 'new' | 'connecting' | 'sent' | 'relaying' | 'done' = 'new';
  #requestTrailers: Trailers | undefined;
  #attempt: Attempt | undefined;
  /** The replica was heard of: from here on the request is never sent again. */
  #isAnswered = false;
  /** The client got part of the response: from here on there can be no other. */
  #isCommitted = false;
  #sawContinue = false;
  /** The replica takes no more of the request for now. */
  #isUploadBlocked = false;
  #response: ResponseHead | undefined;
  #framing: forward.OutgoingFraming = 'none';
  #isPersistent = false;
  #isResponseRead = false;
  #fault: Fault | undefined;
  /** Whether what was relayed of an event stream is whole events. */
  #endsBetweenEvents = true;

  constructor(context: BalancerContext, client: ExchangeClient, head: RequestHead) {
    this.#context = context;
    this.#client = client;
    this.#head = head;
    this.#record = openRecord(context.clock.now(), context.clock.monotonic());
    this.#record.requestId = givenRequestId(head) ?? context.newRequestId();
    this.#record.method = head.method;
    this.#record.path = withoutQuery(head.path);
    context.counters.requests += 1;
    context.retryBudget.earn();
  }

  /** Whether the whole request was read. */
  get isRequestRead(): boolean {
    return this.#requestTrailers !== undefined;
  }

  // ---- What the client does

  /** A piece of the request's body. */
  requestBody(bytes: Buffer): void {
    if (this.#phase === 'done') return;
    this.#record.bytesIn += bytes.length;
    const connection = this.#attempt?.connection;
    if (this.#isTooLarge(this.#record.bytesIn)) this.#answer(own.refusal('body_too_large'));
    else {
      if (!this.#isAnswered) this.#replay.add(bytes, connection !== undefined);
      if (connection !== undefined) this.#sendBody(connection, bytes);
    }
  }

  /** The whole request was read. */
  requestEnd(trailers: Trailers): void {
    if (this.#phase === 'done') return;
    this.#requestTrailers = trailers;
    if (this.#attempt?.connection !== undefined) this.#sendEnd(this.#attempt.connection, trailers);
  }

  /** The request's body broke a rule. */
  requestFault(fault: Fault): void {
    this.#answer(own.refusal(fault));
  }

  /** One read of the client was worked on: begins the exchange, or sends on what was read. */
  advance(): void {
    const connection = this.#attempt?.connection;
    if (this.#phase === 'new') this.#admit();
    else if (connection !== undefined) this.#flushRequest(connection);
    else if (this.#phase === 'connecting' && this.#replay.bytes > holdBytes) this.#client.pauseReading();
  }

  /** The client takes bytes again. */
  clientDrained(): void {
    this.#progress();
    this.#attempt?.connection?.resume();
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
    if (isClientStalled) {
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
    else this.#pick(own.noReadyReplica(this.#context.config));
  }

  #isTooLarge(bytes: number): boolean {
    const { maxBodyBytes } = this.#context.config;
    return maxBodyBytes !== null && bytes > maxBodyBytes;
  }

  /** `otherwise`: the answer when there is no replica to try. `mustBeNew`: take no connection that served before. */
  #pick(otherwise: OwnResponse, mustBeNew = false): void {
    if (this.#needsBudget && !this.#context.retryBudget.spend(this.#context.clock.monotonic())) return this.#wait(otherwise);
    this.#needsBudget = false;
    const choice = this.#context.replicas.pick(this.#excluded);
    if (choice === undefined) return this.#wait(otherwise);
    const { replica, reason, load } = choice;
    this.#record.attempts += 1;
    this.#record.replicaId = replica.id;
    this.#record.reason = reason;
    this.#record.loadAtChoice = load;
    const attempt = new Attempt(replica);
    this.#attempt = attempt;
    const isSafe = this.#context.config.retryUnsafe || isIdempotent(this.#head.method);
    const idle = mustBeNew ? undefined : attempt.takeIdle(isSafe ? Number.POSITIVE_INFINITY : maxIdleForUnsafeMs);
    if (idle !== undefined) return this.#send(idle);
    this.#phase = 'connecting';
    // Dialling has its own, shorter limit.
    this.#client.deadlineAt = Number.POSITIVE_INFINITY;
    return attempt.dial((error, connection) => this.#dialled(attempt, error, connection));
  }

  /** No replica can take it at this moment, or no retry is left: that may change within moments. */
  #wait(otherwise: OwnResponse): void {
    this.#otherwise = otherwise;
    this.#waiting ??= { giveUpAt: undefined, tryAgain: () => this.#lookAgain(), giveUp: () => this.#answer(this.#otherwise) };
    if (!this.#context.waitingRoom.enter(this.#waiting)) return this.#answer(otherwise);
    this.#phase = 'connecting';
    // The waiting room has its own, shorter limit.
    this.#client.deadlineAt = Number.POSITIVE_INFINITY;
    return undefined;
  }

  #lookAgain(): void {
    this.#excluded.length = 0;
    this.#pick(this.#otherwise);
  }

  #dialled(attempt: Attempt, error: DialError | undefined, connection: ReplicaConnection | undefined): void {
    try {
      if (connection !== undefined) return this.#send(connection);
      blameForDial(this.#context, attempt.replica, error);
      return this.#retry({ how: 'unreached', wasReused: false }, own.noReadyReplica(this.#context.config));
    } catch (unexpected) {
      this.#context.crashed(unexpected);
      return this.abort();
    }
  }

  #send(connection: ReplicaConnection): void {
    this.#phase = 'sent';
    this.#timesSent += 1;
    this.#record.sentMs = this.#elapsed();
    connection.begin(this, this.#head.method);
    connection.writer.text(forwardRequestHead(this.#head, this.#client.forwarded, this.#record.requestId));
    for (const bytes of this.#replay.parts) this.#sendBody(connection, bytes);
    this.#replay.trim();
    if (this.#requestTrailers !== undefined) this.#sendEnd(connection, this.#requestTrailers);
    this.#client.resumeReading();
    this.#flushRequest(connection);
  }

  #sendBody(connection: ReplicaConnection, bytes: Buffer): void {
    if (this.#head.bodyLength === chunkedLength) connection.writer.chunk(bytes, 0, bytes.length);
    else connection.writer.bytes(bytes, 0, bytes.length);
  }

  #sendEnd(connection: ReplicaConnection, trailers: Trailers): void {
    if (this.#head.bodyLength === chunkedLength) connection.writer.text(forward.lastChunk(trailers));
  }

  #flushRequest(connection: ReplicaConnection): void {
    this.#progress();
    this.#isUploadBlocked = !connection.writer.flush();
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
    if (head.status === 100) this.#sawContinue = true;
    const isPassedOn = this.#head.minorVersion === 1 && (head.status === 100 || head.status === 103);
    if (isPassedOn) this.#client.writer.text(forward.forwardInterimHead(head));
  }

  responseHead(head: ResponseHead): void {
    this.#noteAnswer();
    this.#phase = 'relaying';
    this.#response = head;
    this.#record.status = head.status;
    this.#framing = forward.responseFraming(head, this.#head);
    // A client that was never told to continue may or may not send its body: what comes next could be read in two ways.
    const isBodyDoubtful = this.#head.expectsContinue && !this.#sawContinue && !this.isRequestRead;
    this.#isPersistent = this.#head.isPersistent && this.#framing !== 'close' && !isBodyDoubtful && !this.#context.counters.isDraining;
    const additions = { requestId: this.#record.requestId, isPersistent: this.#isPersistent, ownLines: this.#ownLines() };
    this.#client.writer.text(forward.forwardResponseHead(head, this.#head, this.#framing, additions));
    if (this.#attempt !== undefined) judgeStatus(this.#context, this.#attempt.replica, head);
  }

  #noteAnswer(): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.#replay.release();
    this.#record.firstByteMs = this.#elapsed();
  }

  #ownLines(): string {
    if (!this.#context.config.exposeReplica) return '';
    return `X-Svc-Replica: ${this.#record.replicaId ?? ''}\r\nX-Svc-Attempts: ${this.#record.attempts}\r\n`;
  }

  body(bytes: Buffer, from: number, to: number): void {
    this.#record.bytesOut += to - from;
    if (this.#framing === 'chunked') {
      this.#client.writer.chunk(bytes, from, to);
      this.#endsBetweenEvents = bytes[to - 1] === LF && bytes[to - 2] === LF;
    } else this.#client.writer.bytes(bytes, from, to);
  }

  responseEnd(trailers: Trailers): void {
    this.#isResponseRead = true;
    if (this.#framing === 'chunked') this.#client.writer.text(forward.lastChunk(trailers));
  }

  responseFault(fault: Fault): void {
    this.#fault = fault;
  }

  afterRead(hasExcess: boolean): void {
    if (this.#fault !== undefined) return this.#replicaBroke(this.#fault);
    this.#progress();
    this.#isCommitted = this.#phase === 'relaying';
    const isClientReady = this.#client.writer.flush();
    if (this.#isResponseRead) return this.#finish(hasExcess);
    return isClientReady ? undefined : this.#attempt?.connection?.pause();
  }

  #finish(hasExcess: boolean): void {
    const response = this.#response;
    if (response?.isPersistent === true && this.isRequestRead && !hasExcess) this.#attempt?.keepConnection(response);
    this.#dropAttempt();
    this.#close('ok');
    // Draining may have begun after the head was sent.
    this.#client.exchangeDone(this.#isPersistent && this.isRequestRead && !this.#context.counters.isDraining);
  }

  // ---- What can go wrong

  connectionLost(): void {
    const attempt = this.#attempt;
    if (attempt === undefined || this.#phase === 'done') return;
    const wasReused = attempt.connection?.isReused === true;
    // The end of a connection that had been idle says nothing against the replica.
    if (this.#isAnswered || !wasReused) blame(this.#context, attempt.replica, 'reset');
    const lost = own.replicaLost(this.#context.config);
    if (this.#isAnswered) this.#answer(lost);
    else this.#retry({ how: 'lost', wasReused }, lost);
  }

  #replicaSilent(): void {
    if (this.#attempt !== undefined) blame(this.#context, this.#attempt.replica, 'timeout');
    this.#answer(own.firstByteTimeout(this.#context.config));
  }

  #replicaBroke(fault: Fault): void {
    if (this.#attempt !== undefined) this.#context.replicas.noteFailure(this.#attempt.replica, false);
    this.#record.code = fault;
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
    this.#dropAttempt();
    if (decision === 'anew') return this.#pick(otherwise, true);
    if (decision === 'give-up') return this.#answer(otherwise);
    // Connects cost a replica nothing, so only requests that were sent are held to the budget.
    this.#needsBudget = failed.how === 'lost';
    if (tried !== undefined) this.#excluded.push(tried);
    return this.#pick(otherwise);
  }

  /** Answers in the replica's place; breaks off when the client has part of its answer already. */
  #answer(response: OwnResponse): void {
    if (this.#phase === 'done') return undefined;
    this.#dropAttempt();
    if (this.#isCommitted) return this.#breakOff();
    const { isDraining } = this.#context.counters;
    const isPersistent = this.#head.isPersistent && this.isRequestRead && response.status !== 500 && !isDraining;
    this.#client.writer.clear();
    this.#client.writer.text(writeOwnResponse(response, this.#head, this.#record.requestId, isPersistent));
    this.#client.writer.flush();
    this.#record.status = response.status;
    this.#record.code ??= response.code;
    this.#close(isClientFault(response.status) ? 'refused' : 'unavailable');
    this.#client.exchangeDone(isPersistent);
    return undefined;
  }

  #breakOff(): void {
    const response = this.#response;
    if (this.#framing === 'chunked' && this.#endsBetweenEvents && response !== undefined && forward.isEventStream(response)) {
      this.#client.writer.chunk(own.brokenEventStream, 0, own.brokenEventStream.length);
    }
    this.#client.writer.flush();
    this.#close('truncated');
    this.#client.exchangeBroken();
  }

  // ---- Bookkeeping

  #dropAttempt(): void {
    this.#attempt?.end();
    this.#attempt = undefined;
  }

  #close(outcome: AccessRecord['outcome']): void {
    this.#phase = 'done';
    if (this.#waiting !== undefined) this.#context.waitingRoom.leave(this.#waiting);
    this.#replay.release();
    if (outcome === 'unavailable' || outcome === 'truncated') this.#context.counters.errors += 1;
    this.#record.outcome = outcome;
    this.#record.totalMs = this.#elapsed();
    this.#context.log(this.#record);
  }

  /** Something moved: the limit counts anew. */
  #progress(): void {
    const { idleTimeoutMs, firstByteTimeoutMs } = this.#context.config;
    const isWaiting = this.#phase === 'sent' && this.isRequestRead;
    this.#client.deadlineAt = this.#context.deadlines.in(isWaiting ? firstByteTimeoutMs : idleTimeoutMs);
  }

  #elapsed(): number {
    return this.#context.clock.monotonic() - this.#record.startedAt;
  }
}
