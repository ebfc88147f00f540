import type { Readable, Writable } from 'node:stream';

/** What is written to: a terminal, a pipe or a file. */
export type OutputStream = Writable & {
  readonly isTTY?: boolean | undefined;
  /** Of a terminal. */
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
};

/** The three standard streams. Tests pass their own. */
export interface Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean | undefined };
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
}
