import { fileURLToPath } from 'node:url';
import type { ObjectStore } from '../../buckets/object-store.ts';
import type { AssemblyStep, Download, FetchPlan } from './fetch.ts';
import { isBlob, objectKeys, type Manifest } from './manifest.ts';
import { sha256Of } from './packs.ts';

/** How long a signed address of an object is good, s: long enough for one fetch, and a new one is made for the next. */
const signedSeconds = 3_600;

/** What a machine has to do to have a published tree. */
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
  // Last, as they close folders that nobody may write.
  for (const { sha256, size } of manifest.layouts) steps.push({ kind: 'pack', name: add('layout', sha256, size), without: [] });
  return {
    id: sha256Of(JSON.stringify(manifest)),
    downloads: [...keys.values()].map(({ key, ...download }) => ({ ...download, address: () => addressOf(store, key) })),
    steps,
  };
}

/** A signed address; of a store that is a folder, the path in it. */
export async function addressOf(store: ObjectStore, key: string): Promise<string> {
  const address = await store.presignGet(key, signedSeconds);
  return address.startsWith('file:') ? fileURLToPath(address) : address;
}
