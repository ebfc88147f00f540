import type { CancelDial } from '../../shared/system/dial.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import type { Replica } from '../replicas/replica.ts';
import type { ReplicaStream } from '../replicas/replica-stream.ts';
import type { OnDialled } from '../replicas/replica-streams.ts';

/**
 * `good`: a success once the body is complete. `busy`: the replica asked for a pause (`Retry-After`). `failed`: a 5xx,
 * which `judgeHead` has already counted as a failure.
 */
type HeadVerdict = 'good' | 'busy' | 'failed';

/**
 * One attempt of one request at one replica. The choice of the replica adds the attempt to the replica's load. `end`
 * removes it, and nothing else does.
 */
export class Attempt {
  readonly replica: Replica;
  stream: ReplicaStream | undefined;
  /** What the head of its response says about the replica's health. */
  verdict: HeadVerdict | undefined;
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

  /** Takes an open connection of the replica; undefined when none may carry the request. */
  takeIdle(mayRunTwice: boolean): ReplicaStream | undefined {
    this.stream = this.replica.streams.take(this.#head, mayRunTwice);
    return this.stream;
  }

  /** Opens a new connection; calls `done` later, and never after `end`. */
  dial(done: OnDialled): void {
    this.#cancelDial = this.replica.streams.dial(this.#head, (error, stream) => {
      this.#cancelDial = undefined;
      this.stream = stream;
      done(error, stream);
    });
  }

  /**
   * From now on the replica must act. `at`: ms since the request's arrival. The exchange does not call this while the
   * client has to send more of its body: then silence proves nothing about the replica.
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

  /** The response's first byte came. `at`: ms since the request's arrival. */
  recordFirstByte(at: number): void {
    this.#isAnswered = true;
    if (this.#awaitedSince !== undefined) this.replica.recordFirstByte(at - this.#awaitedSince);
    this.#awaitedSince = undefined;
  }

  /** The response was read to its end: the connection may serve another request. */
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
