import type { BalancerConfig } from '../../domain/balancer-link.ts';
import type { SuspectReason } from '../exchange/balancer-context.ts';
import type { PlacedReplica } from '../replicas/replica.ts';

/** What the main thread and the threads that serve say to each other. */

/** Where a thread accepts: at a socket that is open already, or at a new one on that port (0: a free one), which it shares with other threads. */
export type Listening = { readonly fd: number } | { readonly port: number };

/** The replicas to use. `number` ascends with each set. */
export interface SetOrder {
  readonly type: 'replicas';
  readonly number: number;
  readonly replicas: readonly PlacedReplica[];
  /** Whether these are all there are, as far as anybody has said; false in a process that has neither a record of them nor a word. */
  readonly isKnown: boolean;
}

/** With what a thread is started. */
export interface ThreadSetup {
  readonly config: BalancerConfig;
  /** Its number, from 0: its row in the shared memory. */
  readonly thread: number;
  readonly board: SharedArrayBuffer;
  /** See `metrics/row-layout.ts`. */
  readonly metrics: SharedArrayBuffer;
  /** At least one. */
  readonly listening: readonly Listening[];
  readonly replicas: SetOrder;
  /** Connections of clients that may be open at once, in all threads together. */
  readonly maxConnections: number;
}

/**
 * To a thread. `stop`: the process is to end, requests under way have `graceMs`. `leave`: another process accepts at the same sockets; each
 * connection may end in its own time, for `graceMs` at most.
 */
export type ThreadOrder = SetOrder | { readonly type: 'stop' | 'leave'; readonly graceMs: number };

/** From a thread. */
export type ThreadNews =
  /** It serves. `fds`: of its listening sockets, which have the same numbers in the whole process. */
  | { readonly type: 'listening'; readonly port: number; readonly fds: readonly number[] }
  /** It could not begin. `code`: the system's name of the error, such as EADDRINUSE. */
  | { readonly type: 'failed'; readonly code: string; readonly message: string }
  /** The set of that number is in force. */
  | { readonly type: 'applied'; readonly number: number }
  | { readonly type: 'suspect'; readonly replicaId: number; readonly reason: SuspectReason }
  /** After `stop` or `leave`: its last connection is closed and everything is written. */
  | { readonly type: 'ended' };
