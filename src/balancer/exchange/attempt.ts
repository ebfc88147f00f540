import type { CancelDial } from '../../shared/dial.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import type { Replica } from '../replicas/replica.ts';
import type { ReplicaStream } from '../replicas/replica-stream.ts';
import type { OnDialled } from '../replicas/replica-streams.ts';

/** One try of one request at one replica, counted there since the replica was picked: it goes down when the attempt ends, here and nowhere else. */
export class Attempt {
  readonly replica: Replica;
  stream: ReplicaStream | undefined;
  readonly #head: RequestHead;
  #cancelDial: CancelDial | undefined;
  #isEnded = false;
  /** The request was sent, and no byte came back yet. */
  #isUnanswered = false;

  constructor(replica: Replica, head: RequestHead) {
    this.replica = replica;
    this.#head = head;
  }

  /** Takes a connection that served before; undefined when there is none that may carry the request. */
  takeIdle(mayRunTwice: boolean): ReplicaStream | undefined {
    this.stream = this.replica.streams.take(this.#head, mayRunTwice);
    return this.stream;
  }

  /** Opens a new connection; `done` comes later, and never after `end`. */
  dial(done: OnDialled): void {
    this.#cancelDial = this.replica.streams.dial(this.#head, (error, stream) => {
      this.#cancelDial = undefined;
      this.stream = stream;
      done(error, stream);
    });
  }

  /** The request is being sent. */
  noteSent(): void {
    this.#isUnanswered = true;
    this.replica.noteSent();
  }

  /** The first byte of a response came, so many ms after the request was sent. */
  noteFirstByte(ms: number): void {
    if (!this.#isUnanswered) return;
    this.#isUnanswered = false;
    this.replica.noteFirstByte(ms);
  }

  /** The response was read to its end: the connection may serve another request. */
  release(response: ResponseHead, isRequestSent: boolean): void {
    this.stream?.release(response, isRequestSent);
    this.stream = undefined;
  }

  /** Ends it, and closes at once the stream that was not released. Only the first call counts. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#cancelDial?.();
    this.stream?.destroy();
    this.stream = undefined;
    if (this.#isUnanswered) this.replica.noteUnanswered();
    this.replica.endAttempt();
  }
}
