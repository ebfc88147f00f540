import type { BalancerConfig } from '../../domain/balancer-link.ts';
import type { Deadlines } from '../transport/deadlines.ts';
import type { ExchangeClient } from './exchange-client.ts';
import type { Trailers } from '../http1/chunked-decoder.ts';
import type { ReplicaStream } from '../replicas/replica-stream.ts';

type UploadingClient = Pick<ExchangeClient, 'pauseReading' | 'resumeReading'>;
type UploadStream = Pick<ReplicaStream, 'body' | 'end' | 'flush'>;

/** Whether a body of that many bytes exceeds the service's limit. */
export const isTooLarge = ({ maxBodyBytes }: Pick<BalancerConfig, 'maxBodyBytes'>, bytes: number): boolean =>
  maxBodyBytes !== null && bytes > maxBodyBytes;

/** Bytes held while there is no connection; beyond it, the balancer stops reading the client. */
const holdBytes = 262_144;

/** The body of one request on its way to a replica: counted, held for a resend, and paced. */
export class Upload {
  bytes = 0;
  isBlocked = false;
  readonly #client: UploadingClient;
  readonly #deadlines: Deadlines;
  readonly #replay = new ReplayBuffer();
  #trailers: Trailers | undefined;
  /** Set when the body does not arrive at once. */
  #rate: BodyRate | undefined;

  constructor(client: UploadingClient, deadlines: Deadlines) {
    this.#client = client;
    this.#deadlines = deadlines;
  }

  get isRead(): boolean {
    return this.#trailers !== undefined;
  }

  /** Whether all bytes read can be sent again. */
  get isReplayable(): boolean {
    return this.#replay.isComplete;
  }

  get held(): number {
    return this.#replay.bytes;
  }

  /** When the client counts as too slow unless more bytes arrive, monotonic ms. */
  get tooSlowAt(): number {
    return this.isRead || this.#rate === undefined ? Number.POSITIVE_INFINITY : this.#rate.tooSlowAt;
  }

  /** The buffer may be overwritten after `settle`. `isHeld`: the bytes may have to be sent later. */
  received(bytes: Buffer, from: number, to: number, stream: UploadStream | undefined, isHeld: boolean): void {
    this.bytes += to - from;
    this.#rate?.received(this.#deadlines.now, to - from);
    if (isHeld) this.#replay.add(bytes, from, to, stream !== undefined);
    stream?.body(bytes, from, to);
  }

  ended(trailers: Trailers, stream: UploadStream | undefined): void {
    this.#trailers = trailers;
    stream?.end(trailers);
  }

  /** Sends all bytes read and resumes reading the client. `mayRunTwice`: the bytes may be needed once more. */
  sendTo(stream: UploadStream, mayRunTwice: boolean): void {
    for (const bytes of this.#replay.parts) stream.body(bytes, 0, bytes.length);
    if (mayRunTwice) this.#replay.trim();
    else this.#replay.release();
    if (this.#trailers !== undefined) stream.end(this.#trailers);
    this.goOn();
    this.flush(stream);
  }

  /** Sends the collected bytes, and stops reading the client when the replica takes no more. */
  flush(stream: UploadStream): void {
    this.isBlocked = !stream.flush();
    if (this.isBlocked) this.#holdUp();
  }

  /** Call it after each read. `isSending`: a stream takes the body. Otherwise, pauses a client that sent too much. */
  settle(isSending: boolean): void {
    this.#replay.keep();
    if (!isSending && this.#replay.bytes > holdBytes) this.#holdUp();
  }

  /** Starts the minimum rate: the body did not arrive at once. */
  watchPace(): void {
    if (!this.isRead) this.#rate ??= new BodyRate(this.#deadlines.now);
  }

  /** Suspends the minimum rate while the balancer chooses a replica or connects to one. */
  rest(): void {
    this.#rate?.holdUp(this.#deadlines.now);
  }

  goOn(): void {
    this.isBlocked = false;
    this.#rate?.goOn(this.#deadlines.now);
    this.#client.resumeReading();
  }

  /** No byte will be sent again, and the rate no longer matters. */
  release(): void {
    this.#replay.release();
    this.#rate = undefined;
  }

  #holdUp(): void {
    this.#rate?.holdUp(this.#deadlines.now);
    this.#client.pauseReading();
  }
}

/** The lowest average rate of an upload, bytes per second, as Kestrel's `MinRequestBodyDataRate`. */
export const minBytesPerSecond = 240;
/** How long a new upload may take before it has sent anything, ms. */
export const graceMs = 10_000;
/** Most time that an upload can save for a later stall, ms. Without a limit, one fast megabyte would buy an hour. */
export const maxAheadMs = 60_000;

/**
 * The pace of one body. Each byte buys time, and waiting for the client spends it. Time in which the balancer does not
 * read the client is free. Pure; times are monotonic ms.
 */
export class BodyRate {
  #aheadMs = graceMs;
  #countedAt: number;
  #isHeldUp = false;

  constructor(now: number) {
    this.#countedAt = now;
  }

  /** When the upload becomes too slow if no more bytes arrive; infinity while the balancer does not read it. */
  get tooSlowAt(): number {
    return this.#isHeldUp ? Number.POSITIVE_INFINITY : this.#countedAt + this.#aheadMs;
  }

  received(now: number, bytes: number): void {
    this.#count(now);
    this.#aheadMs = Math.min(maxAheadMs, this.#aheadMs + (bytes * 1_000) / minBytesPerSecond);
  }

  holdUp(now: number): void {
    this.#count(now);
    this.#isHeldUp = true;
  }

  goOn(now: number): void {
    this.#count(now);
    this.#isHeldUp = false;
  }

  #count(now: number): void {
    if (!this.#isHeldUp) this.#aheadMs = Math.max(0, this.#aheadMs - (now - this.#countedAt));
    this.#countedAt = now;
  }
}

/** Per request. */
const maxReplayBytes = 1_048_576;

/** Holds the bytes of a request's body until a connection can send them, and for a retry. */
export class ReplayBuffer {
  readonly #parts: Buffer[] = [];
  /** The first this many parts are copies; the others are views of buffers that will be overwritten. */
  #kept = 0;
  #bytes = 0;
  #isComplete = true;

  get parts(): readonly Buffer[] {
    return this.#parts;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** `bytes` may be overwritten after `keep`. `isSent`: a connection has them, so the limit applies. */
  add(bytes: Buffer, from: number, to: number, isSent: boolean): void {
    if (!this.#isComplete) return;
    this.#bytes += to - from;
    this.#parts.push(bytes.subarray(from, to));
    if (isSent) this.trim();
  }

  /** Copies the new parts. Most requests are sent within the read that brought them and need no copy. */
  keep(): void {
    for (; this.#kept < this.#parts.length; this.#kept += 1) {
      const part = this.#parts[this.#kept];
      if (part !== undefined) this.#parts[this.#kept] = Buffer.from(part);
    }
  }

  /** Drops all parts when they exceed the limit. Call it only when all parts were sent. */
  trim(): void {
    if (this.#bytes > maxReplayBytes) this.release();
  }

  release(): void {
    if (this.#bytes === 0) return;
    this.#isComplete = false;
    this.#parts.length = 0;
    this.#kept = 0;
    this.#bytes = 0;
  }
}
