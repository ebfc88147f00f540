import { hasErrno } from '../shared/errors.ts';
import type { OutputStream, Streams } from './streams.ts';

/** The process's own streams. A reader that has gone, as in `svc serve status | head -1`, ends the process quietly. */
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
