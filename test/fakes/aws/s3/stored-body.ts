import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';

/** A piece of a body: in memory when small, in a file otherwise. */
export type Segment = { readonly size: number; readonly bytes: Buffer } | { readonly size: number; readonly file: string };

function fileBytes(file: string, from: number, to: number): AsyncIterable<Buffer> {
  return createReadStream(file, { start: from, end: to - 1 });
}

/** The bytes of an object: of one upload, or of its parts. */
export class StoredBody {
  readonly size: number;
  readonly #segments: readonly Segment[];

  constructor(segments: readonly Segment[]) {
    this.#segments = segments;
    this.size = segments.reduce((sum, segment) => sum + segment.size, 0);
  }

  /** Joins bodies without copying. The caller must not dispose of the given bodies afterwards. */
  static join(bodies: readonly StoredBody[]): StoredBody {
    return new StoredBody(bodies.flatMap((body) => body.#segments));
  }

  /** The bytes from `start` up to, not including, `end`. */
  async *read(start = 0, end = this.size): AsyncGenerator<Buffer> {
    let offset = 0;
    for (const segment of this.#segments) {
      const from = Math.max(0, start - offset);
      const to = Math.min(segment.size, end - offset);
      offset += segment.size;
      if (from >= to) continue;
      if ('bytes' in segment) yield segment.bytes.subarray(from, to);
      else yield* fileBytes(segment.file, from, to);
    }
  }

  /** Returns the whole body at once: for small bodies. */
  async bytes(): Promise<Buffer> {
    const chunks: Buffer[] = [];
    for await (const chunk of this.read()) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  /** Removes the file. Open readers can continue. */
  async dispose(): Promise<void> {
    await Promise.all(this.#segments.flatMap((segment) => ('file' in segment ? [rm(segment.file, { force: true })] : [])));
  }
}
