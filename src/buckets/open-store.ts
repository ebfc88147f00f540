import type { BucketLocation } from '../domain/bucket-location.ts';
import type { ObjectStore } from './object-store.ts';

/** Opens one bucket, whether it exists or not; sends no request. A cloud's SDK is loaded only here, on demand. */
export async function openStore(location: BucketLocation, bucket: string): Promise<ObjectStore> {
  if (location.kind === 'directory') return new (await import('./directory.ts')).DirectoryStore(location.path, bucket);
  return (await import('./s3.ts')).openS3Store(location, bucket);
}
