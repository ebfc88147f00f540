import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { SvcError, hasErrno, messageOf } from '../../shared/errors.ts';
import type { SpotTrace } from '../../simulate/spot-fleet.ts';
import { RequestTraceReader, type RequestTrace } from '../../simulate/traces/request-trace.ts';
import { readSpotTrace } from '../../simulate/traces/spot-trace.ts';
import type { CommandContext } from '../command.ts';

/** A spot trace is small. A larger file is another one, and would be kept in memory as a whole. */
const maxSpotCharacters = 64 * 1_048_576;

type Base = Pick<CommandContext, 'cwd' | 'signal'>;

/** Reads a trace of requests, unpacked if it is gzip. Throws SVC_BAD_TRACE, SVC_FILE_NOT_FOUND, SVC_FILE_UNREADABLE. */
export async function readRequestFile(path: string, base: Base): Promise<RequestTrace> {
  const reader = new RequestTraceReader(basename(path));
  await eachPiece(path, base, (piece) => reader.add(piece));
  return reader.finish();
}

/** Reads a spot trace in the same way. */
export async function readSpotFile(path: string, base: Base): Promise<SpotTrace> {
  let text = '';
  await eachPiece(path, base, (piece) => {
    text += piece;
    if (text.length > maxSpotCharacters) throw new SvcError('SVC_BAD_TRACE', `The spot trace ${basename(path)} is larger than 64 MiB.`);
  });
  return readSpotTrace(basename(path), text);
}

/** Calls `take` with the text of a file, piece by piece. */
async function eachPiece(path: string, { cwd, signal }: Base, take: (piece: string) => void): Promise<void> {
  const file = resolve(cwd, path);
  const decoder = new TextDecoder('utf-8', { fatal: true });
  try {
    const unpack = (await isGzip(file)) ? createGunzip() : new PassThrough();
    await pipeline(
      createReadStream(file),
      unpack,
      async (pieces: AsyncIterable<Uint8Array>) => {
        for await (const piece of pieces) take(decode(decoder, file, piece));
        take(decode(decoder, file));
      },
      { signal },
    );
  } catch (error) {
    if (error instanceof SvcError) throw error;
    if (hasErrno(error, 'ENOENT', 'ENOTDIR'))
      throw new SvcError('SVC_FILE_NOT_FOUND', `The trace ${file} does not exist.`, { cause: error });
    const reason = hasErrno(error, 'EISDIR') ? 'it is a folder' : messageOf(error);
    throw new SvcError('SVC_FILE_UNREADABLE', `The trace ${file} cannot be read: ${reason}.`, { cause: error });
  }
}

function decode(decoder: InstanceType<typeof TextDecoder>, file: string, piece?: Uint8Array): string {
  try {
    return piece === undefined ? decoder.decode() : decoder.decode(piece, { stream: true });
  } catch (error) {
    throw new SvcError('SVC_FILE_UNREADABLE', `The trace ${file} is not UTF-8 text.`, { cause: error });
  }
}

async function isGzip(file: string): Promise<boolean> {
  const handle = await open(file);
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(2), 0, 2, 0);
    return bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b;
  } finally {
    await handle.close();
  }
}
