/** Behaviour of a faulty replica for later requests. Times are ms. */
export type Behaviour =
  /** 200 with `bytes` of body, after `afterMs` and an exponentially distributed time of mean `spreadMs`. */
  | { readonly type: 'answer'; readonly afterMs?: number; readonly spreadMs?: number; readonly bytes?: number }
  /** A share (0 to 1) of the requests gets this status at once; the others get 200. */
  | { readonly type: 'status'; readonly status: number; readonly share?: number; readonly retryAfterSeconds?: number }
  /** Nothing listens, and open connections are closed. */
  | { readonly type: 'refuse' }
  /** Accepts and reads, but sends nothing. */
  | { readonly type: 'hang' }
  /** Accepts, and reads only the head. */
  | { readonly type: 'unread' }
  /** Resets the connection once the request has arrived. */
  | { readonly type: 'reset' }
  /** Closes the connection normally once the request has arrived, without a reply. */
  | { readonly type: 'close' }
  /** Half of a body with a Content-Length, followed by silence, a reset or a normal end. */
  | { readonly type: 'half'; readonly ending: 'hang' | 'reset' | 'close' }
  /** 200, and for a share of the requests the idle connection is closed up to `withinMs` later. */
  | { readonly type: 'fickle'; readonly share: number; readonly withinMs: number }
  /** An event stream: `count` events, one each `everyMs`, each with its time of sending. */
  | { readonly type: 'events'; readonly everyMs: number; readonly count: number };

/** From the test to the replica's process, which answers each with a `ReplicaStatus`. */
export type ReplicaCommand = { readonly type: 'become'; readonly behaviour: Behaviour } | { readonly type: 'ask' };

/** From the replica's process. */
export interface ReplicaStatus {
  readonly port: number;
  /** Open connections. */
  readonly open: number;
  /** Connections accepted so far. */
  readonly accepted: number;
}

/**
 * One line of a replica's journal, which survives a SIGKILL. `got`: the replica read the head of a request, so its
 * execution may have begun. `left`: the connection closed before the whole reply was written. `done`: the reply was
 * written.
 */
export interface JournalEntry {
  readonly what: 'got' | 'left' | 'done';
  readonly id: string;
  readonly method: string;
  /** Monotonic ms, the same for all processes of the machine. */
  readonly at: number;
}

/** Monotonic ms, the same for all processes of the machine. */
export function machineTime(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** The header with a test's request id. */
export const idHeader = 'x-test-id';
