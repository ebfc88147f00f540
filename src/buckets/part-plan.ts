/** One part of a file that is sent in parts; numbers count from 1. */
export interface FilePart {
  readonly number: number;
  /** First byte. */
  readonly start: number;
  /** Bytes */
  readonly size: number;
}

const mebibyte = 1_048_576;

/** Files of this size and above are sent in parts, bytes; also the smallest size of a part but the last. */
export const smallestPart = 16 * mebibyte;

/** S3's limit of parts in one upload. */
const maxParts = 10_000;

/** How a file of `size` bytes is divided: always alike, so that an upload can be gone on with by somebody who knows only the file. */
export function planParts(size: number): readonly FilePart[] {
  const partSize = Math.max(smallestPart, Math.ceil(size / maxParts / mebibyte) * mebibyte);
  return Array.from({ length: Math.max(1, Math.ceil(size / partSize)) }, (_part, index) => {
    const start = index * partSize;
    return { number: index + 1, start, size: Math.min(partSize, size - start) };
  });
}
