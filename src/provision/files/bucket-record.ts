import type { BucketPlace } from '../../domain/bucket-place.ts';
import { writeFileAtomic } from '../../shared/atomic-file.ts';
import { SvcError } from '../../shared/errors.ts';
import { isObject } from '../../shared/is-object.ts';
import { readJsonFile } from '../../shared/parse-json.ts';

/** A bucket that was made, or was about to be made, for one owner. */
export interface RecordedBucket {
  readonly bucket: string;
  readonly place: BucketPlace;
}

/** The buckets of one owner, as its file has them; none when there is no file. Throws SVC_STATE_CORRUPT when the file is damaged. */
export function readBuckets(path: string): readonly RecordedBucket[] {
  const file = readJsonFile(path);
  if (file === undefined) return [];
  const { value } = file;
  if (Array.isArray(value) && value.every(isRecorded)) return value;
  throw new SvcError('SVC_STATE_CORRUPT', `${path} does not list buckets.`, {
    hint: 'Restore it from a copy: the buckets that it names are to be removed.',
  });
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
