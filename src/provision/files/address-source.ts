import { fileURLToPath } from 'node:url';
import type { ObjectStore } from '../../buckets/object-store.ts';
import type { BucketLocation } from '../../domain/bucket-location.ts';
import { SvcError } from '../../shared/errors.ts';
import { quote } from '../../shared/text.ts';
import type { AssemblyStep, Download, FetchPlan } from './fetch.ts';
import { sha256Of } from './packs.ts';
import { type Manifest, isBlob, objectKeys } from './manifest.ts';

/** For files from sources without modes. */
const plainMode = 0o644;

/** For the first request about a user's bucket, which names the bucket's own region. */
const anyRegion = 'us-east-1';

type Open = (location: BucketLocation, bucket: string) => Promise<ObjectStore>;

/**
 * Plans the download of an address. `s3:` names an object, or all whose keys begin with the path and a slash; `https:`
 * names a file. `location`: whose credentials S3 gets; otherwise the default ones. Throws SVC_BUCKET when nothing is
 * there.
 */
export async function planAddress(
  address: string,
  location: BucketLocation | undefined,
  open: Open,
  signal: AbortSignal,
): Promise<FetchPlan> {
  if (!address.startsWith('s3://')) return planFile(address);
  const [bucket = '', ...rest] = address.slice('s3://'.length).split('/');
  const path = rest.join('/').replace(/\/+$/, '');
  const store = await open(await regionOf(location, bucket, signal), bucket);
  try {
    return await planObjects(store, address, path, signal);
  } finally {
    // Signing an address needs no connection.
    store.close();
  }
}

async function regionOf(location: BucketLocation | undefined, bucket: string, signal: AbortSignal): Promise<BucketLocation> {
  if (location?.kind === 'directory') return location;
  const start = location ?? { kind: 's3', region: anyRegion };
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
    // Cloud consoles represent a folder by an empty object whose key ends with a slash.
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

/** Validity of a signed address, s: long enough for one fetch. Each fetch gets a new one. */
const signedSeconds = 3_600;

/** Plans the download of a published tree. */
export function planFetch(store: ObjectStore, manifest: Manifest): FetchPlan {
  const blobs = manifest.entries.filter((entry) => entry.kind === 'file').filter(isBlob);
  const keys = new Map<string, Omit<Download, 'address'> & { readonly key: string }>();
  const add = (kind: 'blob' | 'pack' | 'layout', sha256: string, size: number): string => {
    const name = `${kind}-${sha256}`;
    keys.set(name, { name, sha256, size, key: objectKeys[kind](sha256) });
    return name;
  };
  const steps: AssemblyStep[] = manifest.layouts.length === 0 ? [] : [{ kind: 'folder' }];
  for (const { sha256, size, surplus } of manifest.packs) steps.push({ kind: 'pack', name: add('pack', sha256, size), without: surplus });
  for (const { path, mode, mtime, sha256, size } of blobs) {
    steps.push({ kind: 'blob', name: add('blob', sha256, size), path, mode, mtime });
  }
  // Last, because they set the modes of read-only folders.
  for (const { sha256, size } of manifest.layouts) steps.push({ kind: 'pack', name: add('layout', sha256, size), without: [] });
  return {
    id: sha256Of(JSON.stringify(manifest)),
    downloads: [...keys.values()].map(({ key, ...download }) => ({ ...download, address: () => addressOf(store, key) })),
    steps,
  };
}

/** For a store that is a local folder, the object's path. */
async function addressOf(store: ObjectStore, key: string): Promise<string> {
  const address = await store.presignGet(key, signedSeconds);
  return address.startsWith('file:') ? fileURLToPath(address) : address;
}
