import { BodyRate } from './body-rate.ts';
import type { Deadlines } from '../transport/deadlines.ts';
import type { ExchangeClient } from './exchange-client.ts';
import type { Trailers } from '../http1/chunked-decoder.ts';
import { ReplayBuffer } from './replay-buffer.ts';
import type { ReplicaStream } from '../replicas/replica-stream.ts';

/** What an upload needs of the client that sends it, and of the stream that takes it. */
export type UploadingClient = Pick<ExchangeClient, 'pauseReading' | 'resumeReading'>;
export type UploadStream = Pick<ReplicaStream, 'body' | 'end' | 'flush'>;

/** Held while there is no connection yet; the client waits beyond it. */
const holdBytes = 262_144;

/** The body of one request on its way to a replica: what was read of it, what is held to be sent again, and how fast it comes. */
export class Upload {
  /** Read so far. */
  bytes = 0;
  /** The replica takes no more of it for now. */
  isBlocked = false;
  readonly #client: UploadingClient;
  readonly #deadlines: Deadlines;
  readonly #replay = new ReplayBuffer();
  #trailers: Trailers | undefined;
  /** Made when the body does not come at once. */
  #rate: BodyRate | undefined;

  constructor(client: UploadingClient, deadlines: Deadlines) {
    this.#client = client;
    this.#deadlines = deadlines;
  }

  /** Whether it was read to its end. */
  get isRead(): boolean {
    return this.#trailers !== undefined;
  }

  /** Whether all that was read can be sent again. */
  get isReplayable(): boolean {
    return this.#replay.isComplete;
  }

  /** Bytes held for sending them. */
  get held(): number {
    return this.#replay.bytes;
  }

  /** When the client counts as too slow, monotonic ms, unless more comes. */
  get tooSlowAt(): number {
    return this.isRead || this.#rate === undefined ? Number.POSITIVE_INFINITY : this.#rate.tooSlowAt;
  }

  /** `bytes[from, to)` was read; the buffer may be written over after `settle`. `isHeld`: it may have to be sent, or sent again, later. */
  received(bytes: Buffer, from: number, to: number, stream: UploadStream | undefined, isHeld: boolean): void {
    this.bytes += to - from;
    this.#rate?.received(this.#deadlines.now, to - from);
    if (isHeld) this.#replay.add(bytes, from, to, stream !== undefined);
    stream?.body(bytes, from, to);
  }

  /** It has come to its end. */
  ended(trailers: Trailers, stream: UploadStream | undefined): void {
    this.#trailers = trailers;
    stream?.end(trailers);
  }

  /** Sends all that was read over a new stream, and has the client read again. `mayRunTwice`: it may have to be sent once more. */
  sendTo(stream: UploadStream, mayRunTwice: boolean): void {
    for (const bytes of this.#replay.parts) stream.body(bytes, 0, bytes.length);
    if (mayRunTwice) this.#replay.trim();
    else this.#replay.release();
    if (this.#trailers !== undefined) stream.end(this.#trailers);
    this.goOn();
    this.flush(stream);
  }

  /** Sends what was collected, and has the client wait when the replica takes no more. */
  flush(stream: UploadStream): void {
    this.isBlocked = !stream.flush();
    if (this.isBlocked) this.#holdUp();
  }

  /** The work on one read is done. `isSending`: over a stream; without one, the client waits when much is held. */
  settle(isSending: boolean): void {
    this.#replay.keep();
    if (!isSending && this.#replay.bytes > holdBytes) this.#holdUp();
  }

  /** The pace counts from now on: the body did not come at once. */
  watchPace(): void {
    if (!this.isRead) this.#rate ??= new BodyRate(this.#deadlines.now);
  }

  /** A replica is looked for, or connected to: the pace does not count, though the client may go on sending. */
  rest(): void {
    this.#rate?.holdUp(this.#deadlines.now);
  }

  /** The client is read again. */
  goOn(): void {
    this.isBlocked = false;
    this.#rate?.goOn(this.#deadlines.now);
    this.#client.resumeReading();
  }

  /** Nothing of it will be sent again, and its pace is of no interest any more. */
  release(): void {
    this.#replay.release();
    this.#rate = undefined;
  }

  #holdUp(): void {
    this.#rate?.holdUp(this.#deadlines.now);
    this.#client.pauseReading();
  }
}
