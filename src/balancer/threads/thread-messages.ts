import type { BalancerConfig, SuspectReason } from '../../domain/balancer-link.ts';
import type { ExpectedReplica } from '../../domain/expected-replica.ts';
import type { FileLimits } from '../board/file-budget.ts';
import type { SlottedReplica } from '../replicas/replica.ts';
import type { TlsMaterial } from '../tls/tls-files.ts';

/** The messages between the main thread and the serving threads. */

/** Where a thread accepts: at an open socket, or at a new one on a port (0: a free one) that threads share. */
export type Listening = { readonly fd: number } | { readonly port: number };

/** The replicas to use. `number` ascends with each set. */
export interface SetOrder {
  readonly type: 'replicas';
  readonly number: number;
  readonly replicas: readonly SlottedReplica[];
  /** False in a process that has neither a saved set nor one from the reconciler. */
  readonly isKnown: boolean;
  /** While no replica is ready: the one to come. */
  readonly expected?: ExpectedReplica | undefined;
}

/** What a thread is started with. */
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
  /** Undefined when the endpoint speaks no TLS. */
  readonly tls: TlsMaterial | undefined;
  /** Over all threads together. */
  readonly limits: FileLimits;
}

/**
 * A message to a thread.
 *
 * `stop`: the process is to end, and running requests have `graceMs`. `leave`: another process accepts at the same
 * sockets; connections end in their own time, at most `graceMs`.
 */
export type ThreadOrder =
  | SetOrder
  /** Only for new clients. */
  | { readonly type: 'tls'; readonly material: TlsMaterial }
  | { readonly type: 'stop' | 'leave'; readonly graceMs: number };

/** A message from a thread. */
export type ThreadNews =
  /** The thread serves. `fds`: its listening sockets, which have the same numbers in the whole process. */
  | { readonly type: 'listening'; readonly port: number; readonly fds: readonly number[] }
  /** The thread could not start. `code`: the system's error name, such as EADDRINUSE. */
  | { readonly type: 'failed'; readonly code: string; readonly message: string }
  /** The set of that number is in force. */
  | { readonly type: 'applied'; readonly number: number }
  | { readonly type: 'suspect'; readonly replicaId: number; readonly reason: SuspectReason }
  /** A request is the first to wait while no replica serves. */
  | { readonly type: 'held' }
  /** After `stop` or `leave`: the last connection is closed and all output is written. */
  | { readonly type: 'ended' };
