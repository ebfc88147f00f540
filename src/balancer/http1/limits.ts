/** How much of a message's head is read before it is refused. */
export interface HeadLimits {
  /** First line without its CRLF, bytes; more is 414. */
  readonly lineBytes: number;
  /** First line, fields and the empty line, bytes; more is 431. Trailers have the same limit of their own. */
  readonly headBytes: number;
  /** Fields; more is 431. */
  readonly fields: number;
}

/** The limits of common servers: the balancer refuses no head that a replica would accept. */
export const defaultHeadLimits: HeadLimits = { lineBytes: 8_192, headBytes: 32_768, fields: 100 };

/** Hexadecimal digits of one chunk's size. */
export const maxChunkSizeDigits = 16;

/** Total bytes of chunk extensions in one body. They are dropped, so more would only waste processor time. */
export const maxChunkExtensionBytes = 256;

/** Interim (1xx) responses before the final one. */
export const maxInterimResponses = 8;
