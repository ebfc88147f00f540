/** How much of a message's head is read before it is refused. */
export interface HeadLimits {
  /** First line without its CRLF, bytes; more is 414. */
  readonly lineBytes: number;
  /** First line, fields and the empty line, bytes; more is 431. Trailers have the same limit of their own. */
  readonly headBytes: number;
  /** Fields; more is 431. */
  readonly fields: number;
}

/** What servers commonly accept, so that nothing a replica would take is refused here. */
export const defaultHeadLimits: HeadLimits = { lineBytes: 8_192, headBytes: 32_768, fields: 100 };

/** Hexadecimal digits of one chunk's size. */
export const maxChunkSizeDigits = 16;

/** Bytes of chunk extensions in one body, in sum: they are dropped, so more is only a way to burn time. */
export const maxChunkExtensionBytes = 256;

/** Interim (1xx) responses before the final one. */
export const maxInterimResponses = 8;
