import type { BucketPlace } from '../domain/bucket-place.ts';
import type { ObjectStore } from './object-store.ts';

/** Opens one bucket, whether it exists or not; makes no call. The SDK of a cloud is loaded only here, when it is needed. */
export async function openStore(place: BucketPlace, bucket: string): Promise<ObjectStore> {
  if (place.kind === 'directory') return new (await import('./directory.ts')).DirectoryStore(place.path, bucket);
  return (await import('./s3.ts')).openS3Store(place, bucket);
}
