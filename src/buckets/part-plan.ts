/** One part of a multipart upload; numbers count from 1. */
export interface FilePart {
  readonly number: number;
  readonly start: number;
  readonly size: number;
}

const mebibyte = 1_048_576;

/** Files from this size on are sent in parts, bytes. Also the minimum of every part but the last. */
export const smallestPart = 16 * mebibyte;

/** S3's limit per upload. */
const maxParts = 10_000;

/** Depends on the size only, so that another process with the same file can resume the upload. */
export function planParts(size: number): readonly FilePart[] {
  const partSize = Math.max(smallestPart, Math.ceil(size / maxParts / mebibyte) * mebibyte);
  return Array.from({ length: Math.max(1, Math.ceil(size / partSize)) }, (_part, index) => {
    const start = index * partSize;
    return { number: index + 1, start, size: Math.min(partSize, size - start) };
  });
}
