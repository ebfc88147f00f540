import type { DialError } from '../../shared/dial.ts';
import { noteFailedTry, type AccessRecord } from '../access-log/access-record.ts';
import { recordArrival } from './arrival.ts';
import { Attempt } from './attempt.ts';
import type { BalancerContext } from './balancer-context.ts';
import type { ExchangeClient } from './exchange-client.ts';
import type { Trailers } from '../http1/chunked-decoder.ts';
import type { Fault } from '../http1/faults.ts';
import { isClientFault, type OwnResponse } from '../http1/own-response.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import { isGrpc } from '../http1/grpc-request.ts';
import * as own from './own-responses.ts';
import type { ReplicaStream, ReplicaStreamUser } from '../replicas/replica-stream.ts';
import type { Replica } from '../replicas/replica.ts';
import { blame, blameForDial, judgeStatus, noteFailure } from './replica-verdict.ts';
import { Stay, type StayListener } from './stay.ts';
import { Attempts } from './attempts.ts';
import type { FailedAttempt } from './retry-decision.ts';
import { Upload } from './upload.ts';

/** Of a WebSocket connection on which nothing moves: peers that care for it send pings. */
const tunnelIdleMs = 3_600_000;
/** How often a request that waits for its first byte looks whether its replica has been found to hang. */
const lookAtReplicaMs = 500;

/** The life of one request: admit, pick, send, relay, done. It may be cut short at any point from both sides. */
export class Exchange implements ReplicaStreamUser, StayListener {
  readonly #context: BalancerContext;
  readonly #client: ExchangeClient;
  readonly #head: RequestHead;
  readonly #record: AccessRecord;
  readonly #upload: Upload;
  readonly #attempts: Attempts;
  /** Made when it first has to wait. */
  #stay: Stay | undefined;
  #phase: 'new' | 'connecting' | 'sent' | 'relaying' | 'done' = 'new';
  #attempt: Attempt | undefined;
  /** The replica was heard of: from here on the request is never sent again. */
  #isAnswered = false;
  /** The client got part of the response: from here on there can be no other. */
  #isCommitted = false;
  /** The first byte must have come by then, monotonic ms; infinity while part of the request is still to be sent. */
  #answerDueAt = Number.POSITIVE_INFINITY;
  #response: ResponseHead | undefined;
  #isResponseRead = false;
  #fault: Fault | undefined;
  /** What came is no answer to this request: the replica was ending the connection when it was sent. */
  #isGoodbye = false;

  constructor(context: BalancerContext, client: ExchangeClient, head: RequestHead) {
    this.#context = context;
    this.#client = client;
    this.#head = head;
    this.#upload = new Upload(client, context.deadlines);
    this.#record = recordArrival(context, client, head);
    this.#attempts = new Attempts(context, head, this.#record);
    context.counters.requests += 1;
    context.retryBudget.earn();
  }

  /** Whether the whole request was read. */
  get isRequestRead(): boolean {
    return this.#upload.isRead;
  }

  // ---- What the client does

  /** A piece of the request's body. The buffer may be written over after `advance` has returned. */
  requestBody(bytes: Buffer, from: number, to: number): void {
    if (this.#phase === 'done') return;
    const stream = this.#attempt?.stream;
    const isHeld = stream === undefined || (!this.#isAnswered && this.#attempts.mayRunTwice);
    this.#upload.received(bytes, from, to, stream, isHeld);
    if (this.#isTooLarge(this.#upload.bytes)) this.#answer(own.refusal('body_too_large'));
    else if (this.#stay?.addBytes(to - from) === false) this.#answer(own.queueFull(this.#context.config));
  }

  /** The whole request was read; on a WebSocket connection, the client sends no more. */
  requestEnd(trailers: Trailers): void {
    if (this.#phase !== 'done') this.#upload.ended(trailers, this.#attempt?.stream);
  }

  /** The request's body broke a rule. */
  requestFault(fault: Fault): void {
    this.#answer(own.refusal(fault));
  }

  /** One read of the client was worked on: begins the exchange, or sends on what was read. */
  advance(): void {
    if (!this.isRequestRead && this.#mustKeepPace) this.#upload.watchPace();
    if (this.#phase === 'new') this.#admit();
    else if (this.#attempt?.stream !== undefined) this.#flushRequest(this.#attempt.stream);
    if (this.#phase !== 'done') this.#upload.settle(this.#attempt?.stream !== undefined);
  }

  /** Not while the client waits for a sign of the replica, nor when both may talk at once for as long as they like. */
  get #mustKeepPace(): boolean {
    return this.#response === undefined && (this.#isAnswered || !this.#head.expectsContinue) && !isGrpc(this.#head);
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
    } else if (this.#phase !== 'relaying' && !this.isRequestRead && !this.#upload.isBlocked) this.#answer(own.requestTimeout);
    else if (this.#phase === 'sent' && this.isRequestRead && this.#context.deadlines.now < this.#answerDueAt)
      this.#leaveWhenStalled(this.#attempt?.replica);
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
    const choice = this.#attempts.pick();
    if (choice === undefined) return this.#wait(otherwise);
    this.#stay?.pause();
    const attempt = new Attempt(choice.replica, this.#head);
    this.#attempt = attempt;
    const idle = mustBeNew ? undefined : attempt.takeIdle(this.#attempts.mayRunTwice);
    if (idle !== undefined) return this.#send(idle);
    this.#phase = 'connecting';
    this.#upload.rest();
    // Dialling has its own, shorter limit.
    this.#client.deadlineAt = Number.POSITIVE_INFINITY;
    return attempt.dial((error, stream) => this.#dialled(attempt, error, stream));
  }

  /** No replica can take it at this moment, or no retry is left: that may change within moments. */
  #wait(otherwise: OwnResponse): void {
    this.#stay ??= new Stay(this.#context, this.#record, this);
    const refusal = this.#stay.enter(otherwise, this.#upload.held);
    if (refusal !== undefined) return this.#answer(refusal);
    this.#phase = 'connecting';
    this.#upload.rest();
    // The waiting room has its own, shorter limit.
    this.#client.deadlineAt = Number.POSITIVE_INFINITY;
    return undefined;
  }

  lookAgain(otherwise: OwnResponse): void {
    this.#attempts.forgive();
    this.#pick(otherwise);
  }

  waitedInVain(answer: OwnResponse): void {
    this.#answer(answer);
  }

  #dialled(attempt: Attempt, error: DialError | undefined, stream: ReplicaStream | undefined): void {
    try {
      if (stream !== undefined) return this.#send(stream);
      blameForDial(this.#context, attempt.replica, error);
      return this.#retry(attempt, { how: 'unreached', wasReused: false }, own.noReadyReplica(this.#context.config));
    } catch (unexpected) {
      this.#context.crashed(unexpected);
      return this.abort();
    }
  }

  #send(stream: ReplicaStream): void {
    this.#phase = 'sent';
    this.#attempts.noteSent();
    this.#attempt?.noteSent();
    this.#record.sentMs = this.#elapsed();
    stream.begin(this, this.#head, this.#client.forwarded, this.#record.requestId);
    this.#upload.sendTo(stream, this.#attempts.mayRunTwice || stream.mayRefuse);
    this.#sent();
  }

  #flushRequest(stream: ReplicaStream): void {
    this.#upload.flush(stream);
    this.#sent();
  }

  /** More of the request was sent: when that was the last of it, the answer is due. */
  #sent(): void {
    const { deadlines, config } = this.#context;
    if (this.#phase === 'sent' && this.isRequestRead) this.#answerDueAt = deadlines.in(config.firstByteTimeoutMs);
    this.#progress();
  }

  replicaDrained(): void {
    this.#upload.goOn();
    this.#progress();
  }

  // ---- Relay

  responseInterim(head: ResponseHead): void {
    this.#noteAnswer();
    if (head.status === 100 || head.status === 103) this.#client.reply.interim(head);
  }

  responseHead(head: ResponseHead): void {
    this.#isGoodbye = this.#isEndOfIdle(head);
    if (this.#isGoodbye) return;
    this.#noteAnswer();
    this.#phase = 'relaying';
    this.#response = head;
    this.#upload.release();
    this.#record.status = head.status;
    if (head.isTunnel) this.#record.protocol = 'ws';
    this.#client.reply.head(head, this.#record.requestId, this.#ownLines());
    if (this.#attempt !== undefined) judgeStatus(this.#context, this.#attempt.replica, head);
  }

  #noteAnswer(): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.#stay?.end();
    this.#record.firstByteMs = this.#elapsed();
    this.#attempt?.noteFirstByte(this.#record.firstByteMs - (this.#record.sentMs ?? 0));
  }

  #ownLines(): string {
    if (!this.#context.config.exposeReplica) return '';
    return `X-Svc-Replica: ${this.#record.replica?.id ?? ''}\r\nX-Svc-Attempts: ${this.#record.attempts}\r\n`;
  }

  /** Some servers say 408 when they end an idle connection (RFC 9110, section 15.5.9, has the request repeated). */
  #isEndOfIdle({ status, isPersistent }: ResponseHead): boolean {
    if (status !== 408 || isPersistent || this.#isAnswered) return false;
    return this.#attempt?.stream?.isReused === true && this.#attempts.mayRunTwice && this.#upload.isReplayable;
  }

  body(bytes: Buffer, from: number, to: number): void {
    if (this.#isGoodbye) return;
    this.#record.bytesOut += to - from;
    this.#client.reply.body(bytes, from, to);
  }

  responseEnd(trailers: Trailers): void {
    if (this.#isGoodbye) return;
    this.#isResponseRead = true;
    this.#client.reply.end(trailers);
  }

  responseFault(fault: Fault): void {
    this.#fault = fault;
  }

  afterRead(): void {
    if (this.#isGoodbye) return this.streamLost();
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
    if (isRefused && !this.#isAnswered) return this.#retry(attempt, { how: 'refused', wasReused: false }, lost);
    const wasReused = attempt.stream?.isReused === true;
    // The end of a connection that had been idle says nothing against the replica, nor does that of a WebSocket connection.
    if (!this.#isTunnel && (this.#isAnswered || !wasReused)) blame(this.#context, attempt.replica, 'reset');
    if (!this.#isAnswered) return this.#retry(attempt, { how: 'lost', wasReused }, lost);
    noteFailedTry(this.#record, 'lost');
    return this.#answer(lost);
  }

  #replicaSilent(): void {
    if (this.#attempt !== undefined) blame(this.#context, this.#attempt.replica, 'timeout');
    noteFailedTry(this.#record, 'timeout');
    const { config } = this.#context;
    this.#answer(this.isRequestRead ? own.firstByteTimeout(config) : own.uploadTimeout(config));
  }

  #replicaBroke(fault: Fault): void {
    if (this.#attempt !== undefined) noteFailure(this.#context, this.#attempt.replica, false);
    noteFailedTry(this.#record, 'protocol');
    this.#record.fault = fault;
    this.#answer(own.replicaBrokeProtocol(this.#context.config, fault));
  }

  /** A replica that answers nobody is left, if that does no harm; else waiting goes on. */
  #leaveWhenStalled(replica: Replica | undefined): void {
    if (replica === undefined || !this.#attempts.leaves(replica, this.#upload)) return this.#progress();
    this.#dropAttempt();
    return this.#pick(own.firstByteTimeout(this.#context.config));
  }

  #retry(attempt: Attempt, failed: FailedAttempt, otherwise: OwnResponse): void {
    const decision = this.#attempts.failed(attempt.replica, failed, this.#upload);
    this.#dropAttempt();
    if (decision === 'give-up') this.#answer(otherwise);
    else this.#pick(otherwise, decision === 'anew');
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
    this.#stay?.end();
    this.#upload.release();
    this.#record.bytesIn = this.#upload.bytes;
    if (outcome === 'unavailable' || outcome === 'truncated') this.#context.counters.errors += 1;
    this.#record.outcome = outcome;
    this.#record.totalMs = this.#elapsed();
    this.#context.log(this.#record);
  }

  /** Something moved: the limit counts anew. */
  #progress(): void {
    const { deadlines, config } = this.#context;
    if (this.#isTunnel) this.#client.deadlineAt = deadlines.in(tunnelIdleMs);
    else if (this.#phase === 'sent' && this.isRequestRead)
      this.#client.deadlineAt = Math.min(this.#answerDueAt, deadlines.in(lookAtReplicaMs));
    else this.#client.deadlineAt = Math.min(deadlines.in(config.idleTimeoutMs), this.#upload.tooSlowAt);
  }

  #elapsed(): number {
    return this.#context.clock.monotonic() - this.#record.startedAt;
  }
}
