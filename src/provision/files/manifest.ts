import { isObject } from '../../shared/json.ts';

/** One entry of a published tree; `path` is empty for the tree itself. */
export type ManifestEntry =
  | { readonly kind: 'folder'; readonly path: string; readonly mode: number; readonly mtime: number }
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly mode: number;
      readonly mtime: number;
      readonly size: number;
      readonly sha256: string;
    }
  | { readonly kind: 'link'; readonly path: string; readonly target: string };

/** A published tree and the objects that it is assembled from. */
export interface Manifest {
  readonly entries: readonly ManifestEntry[];
  /** Archives of small files, in unpacking order. */
  readonly packs: readonly PublishedPack[];
  /** Archives of links and folders, unpacked last, in this order; none for a single file. */
  readonly layouts: readonly PublishedObject[];
}

/** An object by the SHA-256 of its content (hex), with its size in bytes. */
export interface PublishedObject {
  readonly sha256: string;
  readonly size: number;
}

/** A pack with members that the tree needs. */
export interface PublishedPack extends PublishedObject {
  /** The topmost paths in the pack that the tree does not have. */
  readonly surplus: readonly string[];
}

/** Key prefix of pack indexes. */
export const indexPrefix = 'indexes/';

/** Object keys in the bucket. */
export const objectKeys = {
  blob: (sha256: string): string => `blobs/${sha256}`,
  pack: (sha256: string): string => `packs/${sha256}`,
  packIndex: (sha256: string): string => `${indexPrefix}${sha256}.json`,
  layout: (sha256: string): string => `layouts/${sha256}`,
  manifest: (name: string): string => `manifests/${name}.json`,
} as const;

/** Larger files are separate objects, bytes. */
const largestPacked = 1_048_576;

/** Whether a file is a separate object, no pack member: a large file, or a tree that is a single file. */
export function isBlob({ size, path }: { readonly size: number; readonly path: string }): boolean {
  return size > largestPacked || path === '';
}

/** Whether a value from a bucket is a valid manifest. */
export function isManifest(value: unknown): value is Manifest {
  return (
    isObject(value) &&
    Array.isArray(value['entries']) &&
    value['entries'].every(isEntry) &&
    Array.isArray(value['packs']) &&
    value['packs'].every((pack) => isPublished(pack) && isPathList(pack['surplus'])) &&
    Array.isArray(value['layouts']) &&
    value['layouts'].every(isPublished)
  );
}

function isEntry(value: unknown): boolean {
  if (!isObject(value) || !isPath(value['path'])) return false;
  if (value['kind'] === 'link') return typeof value['target'] === 'string' && value['path'] !== '';
  if (!isCount(value['mode']) || !isCount(value['mtime'])) return false;
  return value['kind'] === 'folder' || (value['kind'] === 'file' && isPublished(value));
}

function isPublished(value: unknown): value is Readonly<Record<string, unknown>> {
  return isObject(value) && isCount(value['size']) && typeof value['sha256'] === 'string' && /^[0-9a-f]{64}$/.test(value['sha256']);
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function isPathList(value: unknown): boolean {
  return Array.isArray(value) && value.every((path) => isPath(path) && path !== '');
}

function isPath(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    !value.includes('\0') &&
    (value === '' || value.split('/').every((part) => !['', '.', '..'].includes(part)))
  );
}
