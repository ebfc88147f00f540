import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Verified } from '../sigv4/verify.ts';
import { ApiError } from '../wire/api-error.ts';
import { ChunkSignatures, decodeChunked, type Trailers } from './aws-chunked.ts';
import { checksumNames, startChecksum, type Checksum, type ChecksumName } from './checksums.ts';
import { StoredBody } from './stored-body.ts';

/** A complete and verified body. */
export interface ReceivedBody {
  readonly body: StoredBody;
  /** Hex, as in ETags. */
  readonly md5: string;
  /** The client's checksum, verified. */
  readonly checksum: Checksum | undefined;
}

/** Larger bodies go to disk. */
const memoryBytes = 256 * 1_024;
const unverified = ['crc32c', 'crc64nvme', 'xxhash3', 'xxhash64', 'xxhash128', 'md5', 'sha512'];

function headerText(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(',') : value;
}

/**
 * Receives a request's body: decodes it, stores it in `folder` when it is large, and verifies its length, hashes and
 * checksums.
 */
export async function receiveBody(request: IncomingMessage, verified: Verified, folder: string): Promise<ReceivedBody> {
  const payload = headerText(request, 'x-amz-content-sha256') ?? 'UNSIGNED-PAYLOAD';
  const trailers: Trailers = new Map();
  const chunked = payload.startsWith('STREAMING-');
  const signatures = chunked && payload.startsWith('STREAMING-AWS4-HMAC-SHA256-PAYLOAD') ? new ChunkSignatures(verified) : undefined;
  const raw: AsyncIterable<Buffer> = request;
  const names = expectedChecksums(request);
  const sums = names.map((name) => ({ name, sum: startChecksum(name) }));
  const md5 = createHash('md5');
  const sha256 = createHash('sha256');
  const store = new BodyWriter(folder);
  try {
    for await (const piece of chunked ? decodeChunked(raw, signatures, trailers) : raw) {
      md5.update(piece);
      if (!chunked) sha256.update(piece);
      for (const { sum } of sums) sum.update(piece);
      await store.write(piece);
    }
    if (!request.complete)
      throw new ApiError('IncompleteBody', 'You did not provide the number of bytes specified by the Content-Length HTTP header', 400);
    const body = await store.finish();
    checkLength(request, body.size);
    const hash = sha256.digest('hex');
    if (/^[\da-f]{64}$/.test(payload) && hash !== payload) {
      throw new ApiError('XAmzContentSHA256Mismatch', "The provided 'x-amz-content-sha256' header does not match what was computed.", 400);
    }
    const digest = md5.digest();
    const givenMd5 = headerText(request, 'content-md5');
    if (givenMd5 !== undefined && givenMd5 !== digest.toString('base64')) {
      throw new ApiError('BadDigest', 'The Content-MD5 you specified did not match what we received.', 400);
    }
    const computed = sums.map(({ name, sum }) => ({ name, value: sum.value() }));
    const checksum = checkedSums(request, trailers, computed);
    return { body, md5: digest.toString('hex'), checksum };
  } catch (error) {
    await store.discard();
    throw error;
  }
}

/** Checksums in a header, or announced for a trailer. */
function expectedChecksums(request: IncomingMessage): readonly ChecksumName[] {
  const announced = headerText(request, 'x-amz-trailer')?.toLowerCase() ?? '';
  const isGiven = (name: string): boolean =>
    request.headers[`x-amz-checksum-${name}`] !== undefined || announced.includes(`x-amz-checksum-${name}`);
  const strange = unverified.find(
    (name) =>
      request.headers[`x-amz-checksum-${name}`] !== undefined ||
      announced.split(',').some((one) => one.trim() === `x-amz-checksum-${name}`),
  );
  if (strange !== undefined) throw new ApiError('NotImplemented', `The emulator does not verify ${strange}.`, 501);
  return checksumNames.filter(isGiven);
}

function checkedSums(
  request: IncomingMessage,
  trailers: Trailers,
  computed: readonly { readonly name: ChecksumName; readonly value: string }[],
): Checksum | undefined {
  for (const { name, value } of computed) {
    const given = headerText(request, `x-amz-checksum-${name}`) ?? trailers.get(`x-amz-checksum-${name}`);
    if (given !== value) {
      throw new ApiError('BadDigest', `The ${name.toUpperCase()} you specified did not match the calculated checksum.`, 400);
    }
  }
  const [first] = computed;
  return first && { ...first, type: 'FULL_OBJECT' };
}

function checkLength(request: IncomingMessage, size: number): void {
  const announced = headerText(request, 'x-amz-decoded-content-length');
  if (announced !== undefined && Number(announced) !== size) {
    throw new ApiError(
      'IncompleteBody',
      'You did not provide the number of bytes specified by the x-amz-decoded-content-length header',
      400,
    );
  }
}

/** Keeps bytes in memory up to a limit, and then in a file. */
class BodyWriter {
  readonly #folder: string;
  #pieces: Buffer[] = [];
  #size = 0;
  #file: { readonly path: string; readonly stream: ReturnType<typeof createWriteStream> } | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async write(piece: Buffer): Promise<void> {
    this.#size += piece.length;
    if (this.#file === undefined && this.#size <= memoryBytes) {
      this.#pieces.push(Buffer.from(piece));
      return;
    }
    if (this.#file === undefined) {
      const path = join(this.#folder, randomUUID());
      this.#file = { path, stream: createWriteStream(path, { mode: 0o600 }) };
      for (const early of this.#pieces) this.#file.stream.write(early);
      this.#pieces = [];
    }
    if (!this.#file.stream.write(piece)) await once(this.#file.stream, 'drain');
  }

  async finish(): Promise<StoredBody> {
    if (this.#file === undefined) return new StoredBody([{ size: this.#size, bytes: Buffer.concat(this.#pieces) }]);
    this.#file.stream.end();
    await finished(this.#file.stream);
    return new StoredBody([{ size: this.#size, file: this.#file.path }]);
  }

  async discard(): Promise<void> {
    if (this.#file === undefined) return;
    // Pending writes fail because the body is discarded.
    this.#file.stream.on('error', () => undefined).destroy();
    await rm(this.#file.path, { force: true });
  }
}
