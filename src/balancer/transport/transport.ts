/** What a transport tells its user; everything but `closed` only between `start` and the end of the transport. */
export interface TransportUser {
  /** Bytes came. The buffer is written over once the call has returned. */
  received(bytes: Buffer): void;
  /** The peer sends no more. */
  ended(): void;
  /** After `isBlocked` was true: all that was written has left. */
  drained(): void;
  /** It is closed, for whatever reason; comes once. */
  closed(): void;
}

/** A stream of bytes to one peer and back: a TCP connection, a Unix socket, or TLS over one of them. */
export interface Transport {
  /** The peer's address; empty when it has none. */
  readonly remoteAddress: string;
  readonly isSecure: boolean;
  /** Whether the peer, or the network, takes no more for now: what was written waits in memory until `drained`. */
  readonly isBlocked: boolean;
  /** How often anything was handed to the kernel: whether what was written has begun to leave. */
  readonly sends: number;
  /** Begins to read. Called once. */
  start(user: TransportUser): void;
  /** Writes Latin-1 text. */
  text(text: string): void;
  /** Writes bytes; the buffer must not be changed any more. */
  bytes(bytes: Buffer): void;
  /** Closes it when the peer has reset the connection, which is not seen while nothing is read. */
  probe(): void;
  pause(): void;
  resume(): void;
  readonly isPaused: boolean;
  /** Sends no more; `onSent` is called when everything written has left. Closes once the peer has ended too. */
  end(onSent?: () => void): void;
  /** Closes in a way that the peer cannot take for an orderly end, once everything written has left. */
  reset(): void;
  /** Closes at once; what was written and has not left is lost. */
  destroy(): void;
}
