import { createHash } from 'node:crypto';
import { isObject } from '../../shared/json.ts';
import type { ManifestEntry, PublishedObject, PublishedPack } from './manifest.ts';
import { tarEnd, tarMember, type TarMember } from './tar.ts';

/** A small file that is, or can become, a pack member. */
export type PackedFile = Extract<ManifestEntry, { readonly kind: 'file' }>;

/** The index of a pack in the bucket. */
export interface PackIndex extends PublishedObject {
  readonly members: readonly PackMember[];
}

interface PackMember {
  readonly path: string;
  readonly mode: number;
  readonly sha256: string;
}

/** A pack is closed at this size, bytes. */
const packSize = 8 * 1_048_576;

/** Files with equal ids are interchangeable. */
export function memberId({ path, mode, sha256 }: PackMember): string {
  return `${sha256} ${mode.toString(8)} ${path}`;
}

/** A full pack, or the last one. */
export interface NewPack {
  readonly index: PackIndex;
  readonly content: Buffer;
}

/** Collects files into packs. Holds at most one pack in memory. */
export class PackBuilder {
  #blocks: Buffer[] = [];
  #members: PackMember[] = [];
  #size = 0;

  /** Returns a pack if this file completed it. */
  add(file: PackedFile, content: Buffer): NewPack | undefined {
    const member: TarMember = { ...file, content };
    const block = tarMember(member);
    this.#blocks.push(block);
    this.#members.push({ path: file.path, mode: file.mode, sha256: file.sha256 });
    this.#size += block.length;
    return this.#size >= packSize ? this.close() : undefined;
  }

  /** Returns the remaining files as a pack; undefined when there are none. */
  close(): NewPack | undefined {
    if (this.#members.length === 0) return undefined;
    const content = Buffer.concat([...this.#blocks, tarEnd]);
    const index = { sha256: sha256Of(content), size: content.length, members: this.#members };
    this.#blocks = [];
    this.#members = [];
    this.#size = 0;
    return { index, content };
  }
}

/** SHA-256, hex. */
export function sha256Of(content: Buffer | string): string {
  return createHash('sha256').update(content).digest('hex');
}

/**
 * Chooses known packs for a tree, and reports which files they cover. Surplus members are removed where a pack is
 * unpacked, so their conflicts with the tree do not matter.
 */
export function usePacks(
  entries: readonly ManifestEntry[],
  known: readonly PackIndex[],
): { readonly packs: readonly PublishedPack[]; readonly covered: ReadonlySet<string> } {
  const kinds = new Map(entries.map(({ path, kind }) => [path, kind] as const));
  const missing = new Set(entries.flatMap((entry) => (entry.kind === 'file' ? [memberId(entry)] : [])));
  const covered = new Set<string>();
  const packs: PublishedPack[] = [];
  for (const { sha256, size, members } of known) {
    const useful = members.filter((member) => missing.has(memberId(member)));
    if (useful.length === 0) continue;
    const neededIds = new Set(useful.map(memberId));
    for (const id of neededIds) {
      missing.delete(id);
      covered.add(id);
    }
    packs.push({
      sha256,
      size,
      surplus: surplusOf(
        members.filter((member) => !neededIds.has(memberId(member))),
        useful,
        kinds,
      ),
    });
  }
  return { packs, covered };
}

function surplusOf(extra: readonly PackMember[], useful: readonly PackMember[], kinds: ReadonlyMap<string, string>): readonly string[] {
  const needed = new Set(useful.flatMap(({ path }) => [path, ...foldersOf(path)]));
  const surplus = new Set<string>();
  for (const { path } of extra) {
    // A folder of the tree stays even without needed files in the pack.
    const top = [...foldersOf(path), path].find((one) => !needed.has(one) && kinds.get(one) !== 'folder');
    surplus.add(top ?? path);
  }
  return [...surplus];
}

function foldersOf(path: string): readonly string[] {
  const folders: string[] = [];
  for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1)) folders.push(path.slice(0, slash));
  return folders;
}

/** Whether a value from a bucket is a valid pack index. */
export function isPackIndex(value: unknown): value is PackIndex {
  return (
    isObject(value) &&
    typeof value['sha256'] === 'string' &&
    typeof value['size'] === 'number' &&
    Array.isArray(value['members']) &&
    value['members'].every(
      (member: unknown) =>
        isObject(member) &&
        typeof member['path'] === 'string' &&
        typeof member['mode'] === 'number' &&
        typeof member['sha256'] === 'string',
    )
  );
}
