import { scopeText, sha256Hex, signature } from '../sigv4/signature.ts';
import type { Verified } from '../sigv4/verify.ts';
import { ApiError } from '../wire/api-error.ts';
import { createHash, type Hash } from 'node:crypto';

/** Trailers after the last chunk, names in lower case. */
export type Trailers = Map<string, string>;

const mostHeadBytes = 4_096;
const emptyHash = sha256Hex('');

/** Verifies the chain of signatures: each chunk's signature covers the previous one. */
export class ChunkSignatures {
  readonly #verified: Verified;
  #previous: string;

  constructor(verified: Verified) {
    this.#verified = verified;
    this.#previous = verified.signature;
  }

  /** Throws unless `given` is the signature of a chunk with that hash. */
  checkChunk(hash: string, given: string): void {
    this.#check(this.#sign('AWS4-HMAC-SHA256-PAYLOAD', `${emptyHash}\n${hash}`), given);
  }

  /** Throws unless `given` is the signature of those trailers, each line with its line feed. */
  checkTrailers(lines: string, given: string): void {
    this.#check(this.#sign('AWS4-HMAC-SHA256-TRAILER', sha256Hex(lines)), given);
  }

  #sign(kind: string, end: string): string {
    const { date, scope, signingKey } = this.#verified;
    return signature(signingKey, [kind, date, scopeText(scope), this.#previous, end].join('\n'));
  }

  #check(expected: string, given: string): void {
    if (expected !== given)
      throw new ApiError('SignatureDoesNotMatch', 'The request signature we calculated does not match the signature you provided.', 403);
    this.#previous = given;
  }
}

function incomplete(): ApiError {
  return new ApiError('IncompleteBody', 'The request body terminated unexpectedly', 400);
}

/** Received bytes that are not yet read. */
class Inbox {
  readonly #source: AsyncIterator<Buffer>;
  #buffer: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async #more(): Promise<void> {
    const next = await this.#source.next();
    if (next.done === true) throw incomplete();
    this.#buffer = this.#buffer.length === 0 ? next.value : Buffer.concat([this.#buffer, next.value]);
  }

  async line(): Promise<string> {
    for (;;) {
      const end = this.#buffer.indexOf('\r\n');
      if (end !== -1) {
        const text = this.#buffer.toString('latin1', 0, end);
        this.#buffer = this.#buffer.subarray(end + 2);
        return text;
      }
      if (this.#buffer.length > mostHeadBytes) throw new ApiError('InvalidRequest', 'A chunk has no proper head.', 400);
      await this.#more();
    }
  }

  /** Throws when more bytes follow; without waiting for the end, Node would not mark the request as complete. */
  async end(): Promise<void> {
    while (this.#buffer.length === 0) {
      const next = await this.#source.next();
      if (next.done === true) return;
      this.#buffer = next.value;
    }
    throw new ApiError('InvalidRequest', 'There is more after the last chunk.', 400);
  }

  /** Returns at least one byte and at most this many. */
  async some(most: number): Promise<Buffer> {
    if (this.#buffer.length === 0) await this.#more();
    const piece = this.#buffer.subarray(0, most);
    this.#buffer = this.#buffer.subarray(piece.length);
    return piece;
  }
}

/**
 * Decodes a body of content encoding `aws-chunked`, without chunk heads and trailers. With `signatures` it verifies
 * each chunk, after yielding its bytes: the caller must discard them when the end throws.
 */
export async function* decodeChunked(
  source: AsyncIterable<Buffer>,
  signatures: ChunkSignatures | undefined,
  trailers: Trailers,
): AsyncGenerator<Buffer> {
  const inbox = new Inbox(source);
  for (;;) {
    const head = /^([\da-f]+)(?:;chunk-signature=([\da-f]{64}))?$/i.exec(await inbox.line());
    if (head === null) throw new ApiError('InvalidRequest', 'A chunk has no proper head.', 400);
    let left = Number.parseInt(head[1] ?? '', 16);
    const last = left === 0;
    const hash: Hash | undefined = signatures && createHash('sha256');
    while (left > 0) {
      const piece = await inbox.some(left);
      left -= piece.length;
      hash?.update(piece);
      yield piece;
    }
    if (hash !== undefined) signatures?.checkChunk(hash.digest('hex'), head[2] ?? '');
    if (last) break;
    if ((await inbox.line()) !== '') throw new ApiError('InvalidRequest', 'A chunk is longer than its head says.', 400);
  }
  await readTrailers(inbox, signatures, trailers);
  await inbox.end();
}

async function readTrailers(inbox: Inbox, signatures: ChunkSignatures | undefined, trailers: Trailers): Promise<void> {
  let signed = '';
  for (let line = await inbox.line(); line !== ''; line = await inbox.line()) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (name === 'x-amz-trailer-signature') signatures?.checkTrailers(signed, value);
    else {
      trailers.set(name, value);
      signed += `${name}:${value}\n`;
    }
  }
}
