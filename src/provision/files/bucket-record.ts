import { readFileSync } from 'node:fs';
import type { BucketPlace } from '../../domain/bucket-place.ts';
import { writeFileAtomic } from '../../shared/atomic-file.ts';
import { hasErrno, SvcError } from '../../shared/errors.ts';
import { isObject } from '../../shared/is-object.ts';

/** A bucket that was made, or was about to be made, for one owner. */
export interface RecordedBucket {
  readonly bucket: string;
  readonly place: BucketPlace;
}

/** The buckets of one owner, as its file has them; none when there is no file. */
export function readBuckets(path: string): readonly RecordedBucket[] {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return [];
    throw new SvcError('SVC_STATE_CORRUPT', `${path} cannot be read.`, {
      cause: error,
      hint: 'It names buckets that are to be removed; mend it.',
    });
  }
  if (!Array.isArray(content) || !content.every(isRecorded)) throw new SvcError('SVC_STATE_CORRUPT', `${path} does not name buckets.`);
  return content;
}

/** Replaces the file in one step. */
export function writeBuckets(path: string, buckets: readonly RecordedBucket[]): void {
  writeFileAtomic(path, JSON.stringify(buckets));
}

function isRecorded(value: unknown): value is RecordedBucket {
  if (!isObject(value) || typeof value['bucket'] !== 'string') return false;
  const { place } = value;
  if (!isObject(place)) return false;
  return place['kind'] === 'directory' ? typeof place['path'] === 'string' : place['kind'] === 's3' && typeof place['region'] === 'string';
}
