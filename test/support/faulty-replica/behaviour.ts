/** What a faulty replica does with the requests that it gets from now on. Times are ms. */
export type Behaviour =
  /** 200 with `bytes` of body, after `afterMs` and an exponentially distributed time of mean `spreadMs`. */
  | { readonly type: 'answer'; readonly afterMs?: number; readonly spreadMs?: number; readonly bytes?: number }
  /** A share (0 to 1) of the requests gets this status, at once; the others 200. */
  | { readonly type: 'status'; readonly status: number; readonly share?: number; readonly retryAfterSeconds?: number }
  /** Nothing listens, and what was connected is closed. */
  | { readonly type: 'refuse' }
  /** Accepts, reads and says nothing. */
  | { readonly type: 'hang' }
  /** Accepts, and reads no more than the head. */
  | { readonly type: 'unread' }
  /** Resets the connection when the request is there. */
  | { readonly type: 'reset' }
  /** Closes the connection in order when the request is there, without a word. */
  | { readonly type: 'close' }
  /** Half of a body whose length was announced, and then silence, a reset or an orderly end. */
  | { readonly type: 'half'; readonly ending: 'hang' | 'reset' | 'close' }
  /** 200, and for a share of the requests the idle connection is closed up to `withinMs` later. */
  | { readonly type: 'fickle'; readonly share: number; readonly withinMs: number }
  /** An event stream: `count` events, one each `everyMs`, each saying when it was sent. */
  | { readonly type: 'events'; readonly everyMs: number; readonly count: number };

/** From the test to the replica's process; each is answered by a `ReplicaStatus`. */
export type ReplicaCommand = { readonly type: 'become'; readonly behaviour: Behaviour } | { readonly type: 'ask' };

/** From the replica's process. */
export interface ReplicaStatus {
  readonly port: number;
  /** Connections that are open. */
  readonly open: number;
  /** Connections that were accepted so far. */
  readonly accepted: number;
}

/**
 * One line of a replica's journal, which outlives a SIGKILL. `got`: the head of a request was read, so that running it may have begun. `left`: its
 * connection was closed before the answer had been written. `done`: the answer was written.
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

/** The header in which a test names its request. */
export const idHeader = 'x-test-id';
