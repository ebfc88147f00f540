import type { ObjectStore } from '../../buckets/object-store.ts';
import type { BucketPlace } from '../../domain/bucket-place.ts';
import { SvcError } from '../../shared/errors.ts';
import { quote } from '../../shared/quote.ts';
import type { Download, FetchPlan } from './fetch.ts';
import { sha256Of } from './packs.ts';
import { addressOf } from './published-tree.ts';

/** The mode of a file that comes from where there are no modes. */
const plainMode = 0o644;

/** Where a bucket of the user's is looked for first; a bucket's own region is asked for. */
const anyRegion = 'us-east-1';

type Open = (place: BucketPlace, bucket: string) => Promise<ObjectStore>;

/**
 * What a machine has to do to have what is at an `s3:` address (an object, or all whose keys begin with it and a slash) or an `https:` address (a
 * file). Throws SVC_BUCKET when nothing is there. `place` says whose credentials are used for S3, else the default ones are.
 */
export async function planAddress(address: string, place: BucketPlace | undefined, open: Open, signal: AbortSignal): Promise<FetchPlan> {
  if (!address.startsWith('s3://')) return planFile(address);
  const [bucket = '', ...rest] = address.slice('s3://'.length).split('/');
  const path = rest.join('/').replace(/\/+$/, '');
  const store = await open(await regionOf(place, bucket, signal), bucket);
  try {
    return await planObjects(store, address, path, signal);
  } finally {
    // Signing addresses needs no connection.
    store.close();
  }
}

async function regionOf(place: BucketPlace | undefined, bucket: string, signal: AbortSignal): Promise<BucketPlace> {
  if (place?.kind === 'directory') return place;
  const start = place ?? { kind: 's3', region: anyRegion };
  const { findS3Region } = await import('../../buckets/s3.ts');
  return { ...start, region: await findS3Region(start, bucket, { signal }) };
}

async function planObjects(store: ObjectStore, address: string, path: string, signal: AbortSignal): Promise<FetchPlan> {
  const single = path === '' || address.endsWith('/') ? undefined : await store.head(path, { signal });
  if (single !== undefined) {
    const download = downloadOf(store, path, single.size);
    return { id: sha256Of(`${address} ${single.size}`), downloads: [download], steps: [stepOf(download.name, '')] };
  }
  const prefix = path === '' ? '' : `${path}/`;
  const downloads: Download[] = [];
  const steps: FetchPlan['steps'][number][] = [{ kind: 'folder' }];
  const seen: string[] = [];
  for await (const { key, size } of store.list(prefix, { signal })) {
    const name = key.slice(prefix.length);
    // Consoles mark a folder by an empty object with a slash at its end.
    if (name === '' || name.endsWith('/')) continue;
    if (name.split('/').some((part) => ['', '.', '..'].includes(part))) {
      throw new SvcError('SVC_BUCKET', `${quote(store.uri(key), 200)} cannot be the name of a file.`, {
        hint: 'Rename it, or name another folder.',
      });
    }
    const download = downloadOf(store, key, size);
    downloads.push(download);
    steps.push(stepOf(download.name, name));
    seen.push(`${key} ${size}`);
  }
  if (downloads.length === 0)
    throw new SvcError('SVC_BUCKET', `There is nothing at ${quote(address, 200)}.`, { hint: 'Check the bucket and the path.' });
  return { id: sha256Of(`${address}\n${seen.join('\n')}`), downloads, steps };
}

function downloadOf(store: ObjectStore, key: string, size: number): Download {
  return { name: `object-${sha256Of(key)}`, sha256: undefined, size, address: () => addressOf(store, key) };
}

function planFile(address: string): FetchPlan {
  const name = `file-${sha256Of(address)}`;
  const download = { name, sha256: undefined, size: undefined, address: () => Promise.resolve(address) };
  return { id: name, downloads: [download], steps: [stepOf(name, '')] };
}

function stepOf(name: string, path: string): FetchPlan['steps'][number] {
  return { kind: 'blob', name, path, mode: plainMode, mtime: undefined };
}
