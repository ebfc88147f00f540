import type { Readable, Writable } from 'node:stream';

/** What is written to: a terminal, a pipe or a file. */
export type OutputStream = Writable & {
  readonly isTTY?: boolean | undefined;
  /** Of a terminal. */
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
};

/** Columns for a line: those of the terminal, 80 where it does not know them; without bound where it is none. */
export function columnsOf(stream: OutputStream): number {
  if (stream.isTTY !== true) return Number.POSITIVE_INFINITY;
  return stream.columns === undefined || stream.columns < 1 ? 80 : stream.columns;
}

/** The three standard streams. Tests pass their own. */
export interface Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean | undefined };
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
}
