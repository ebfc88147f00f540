/** The events of a transport for its user. All but `closed` come only between `start` and the end of the transport. */
export interface TransportUser {
  /** The buffer is overwritten once the call has returned. */
  received(bytes: Buffer): void;
  /** The peer sends no more. */
  ended(): void;
  /** After `isBlocked` was true: all written bytes have left. */
  drained(): void;
  /** The transport is closed, for any reason; comes once. */
  closed(): void;
}

/** A stream of bytes to one peer and back: a TCP connection, a Unix socket, or TLS over one of them. */
export interface Transport {
  /** Empty when the peer has no address. */
  readonly remoteAddress: string;
  readonly isSecure: boolean;
  /** The peer or the network takes no more for now: written bytes wait in memory until `drained`. */
  readonly isBlocked: boolean;
  /** How often bytes were handed to the kernel: shows whether written bytes have begun to leave. */
  readonly sends: number;
  start(user: TransportUser): void;
  /** `text`: Latin-1. */
  text(text: string): void;
  /** Writes bytes; the caller must not change the buffer any more. */
  bytes(bytes: Buffer): void;
  /** Closes it when the peer has reset the connection, which is not detected without reads. */
  probe(): void;
  pause(): void;
  resume(): void;
  readonly isPaused: boolean;
  /** Sends no more; `onSent` is called when all written bytes have left. Closes once the peer has ended too. */
  end(onSent?: () => void): void;
  /** Closes, once all written bytes have left, in a way that the peer cannot take for an orderly end. */
  reset(): void;
  /** Closes at once; written bytes that have not left are lost. */
  destroy(): void;
}
