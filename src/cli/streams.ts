import type { Readable, Writable } from 'node:stream';
import { hasErrno } from '../shared/errors.ts';

/** An output: a terminal, a pipe or a file. */
export type OutputStream = Writable & {
  readonly isTTY?: boolean | undefined;
  /** Only for a terminal. */
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
};

/** Columns of a line: those of the terminal, 80 when it does not report them; infinite without a terminal. */
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

/** The process's own streams. When the reader closes the pipe (`svc … | head -1`), it ends without an error. */
export function processStreams(): Streams {
  endWhenReaderIsGone(process.stdout);
  endWhenReaderIsGone(process.stderr);
  return { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr };
}

function endWhenReaderIsGone(stream: OutputStream): void {
  stream.on('error', (error) => {
    if (hasErrno(error, 'EPIPE')) process.exit(0);
    throw error;
  });
}
