import type { BucketLocation } from '../domain/bucket-location.ts';
import type { ObjectStore } from './object-store.ts';

/** Opens a bucket, whether it exists or not, without a request. Only this loads a cloud's SDK. */
export async function openStore(location: BucketLocation, bucket: string): Promise<ObjectStore> {
  if (location.kind === 'directory') return new (await import('./directory.ts')).DirectoryStore(location.path, bucket);
  return (await import('./s3.ts')).openS3Store(location, bucket);
}
