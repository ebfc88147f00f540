import type { Duplex } from 'node:stream';
import { SvcError } from '../../shared/errors.ts';

const newline = 10;

/**
 * The next line of a stream that has no other reader; later bytes stay in the stream. Rejects when the stream ends
 * first, or the line is too long.
 */
export function readLine(stream: Duplex, maxBytes: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const read: Buffer[] = [];
  let length = 0;
  const done = (): void => {
    stream.off('readable', readAvailable).off('end', onEnd).off('close', onEnd).off('error', onError);
  };
  const readAvailable = (): void => {
    for (let chunk: unknown = stream.read(); chunk instanceof Buffer; chunk = stream.read()) {
      const end = chunk.indexOf(newline);
      const line = end < 0 ? chunk : chunk.subarray(0, end);
      read.push(line);
      length += line.length;
      const isTooLong = length > maxBytes;
      if (end < 0 && !isTooLong) continue;
      done();
      if (isTooLong) return reject(new SvcError('SVC_BAD_REQUEST', 'A line of an edge proxy is too long.'));
      if (end + 1 < chunk.length) stream.unshift(chunk.subarray(end + 1));
      return resolve(Buffer.concat(read).toString('utf8'));
    }
    return undefined;
  };
  const onEnd = (): void => (done(), reject(new Error('the connection ended')));
  const onError = (error: Error): void => (done(), reject(error));
  stream.on('readable', readAvailable).on('end', onEnd).on('close', onEnd).on('error', onError);
  if (stream.destroyed) onEnd();
  return promise;
}
