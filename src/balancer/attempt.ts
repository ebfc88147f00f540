import type { CancelDial, DialError } from '../shared/dial.ts';
import type { ResponseHead } from './http1/response-head.ts';
import type { Replica } from './replica.ts';
import type { ReplicaConnection } from './replica-connection.ts';

/** Gets a connection, or why there is none. */
export type OnDialled = (error: DialError | undefined, connection: ReplicaConnection | undefined) => void;

/** One try of one request at one replica, counted there since the replica was picked: it goes down when the attempt ends, here and nowhere else. */
export class Attempt {
  readonly replica: Replica;
  connection: ReplicaConnection | undefined;
  #cancelDial: CancelDial | undefined;
  #isEnded = false;

  constructor(replica: Replica) {
    this.replica = replica;
  }

  /** Takes a connection that was idle for `maxIdleMs` at most; undefined when there is none. */
  takeIdle(maxIdleMs: number): ReplicaConnection | undefined {
    this.connection = this.replica.pool.take(maxIdleMs);
    return this.connection;
  }

  /** Opens a new connection; `done` comes later, and never after `end`. */
  dial(done: OnDialled): void {
    this.#cancelDial = this.replica.pool.dial((error, connection) => {
      this.#cancelDial = undefined;
      this.connection = connection;
      done(error, connection);
    });
  }

  /** The response was read to its end and nothing followed: the connection can serve another request. */
  keepConnection(response: ResponseHead): void {
    if (this.connection !== undefined) this.replica.pool.give(this.connection, response);
    this.connection = undefined;
  }

  /** Ends it, and closes at once the connection that was not kept. Only the first call counts. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#cancelDial?.();
    this.connection?.destroy();
    this.connection = undefined;
    this.replica.endAttempt();
  }
}
