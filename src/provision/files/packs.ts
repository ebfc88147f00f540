import { createHash } from 'node:crypto';
import { isObject } from '../../shared/is-object.ts';
import type { ManifestEntry, PublishedObject, PublishedPack } from './manifest.ts';
import { tarEnd, tarMember, type TarMember } from './tar.ts';

/** A small file that is, or could be, in a pack. */
export type PackedFile = Extract<ManifestEntry, { readonly kind: 'file' }>;

/** What is known of a pack in the bucket. */
export interface PackIndex extends PublishedObject {
  readonly members: readonly PackMember[];
}

/** What makes a member the same as a file of a tree. */
export interface PackMember {
  readonly path: string;
  readonly mode: number;
  readonly sha256: string;
}

/** Content of a pack is closed when it has grown to this, bytes. */
const packSize = 8 * 1_048_576;

/** A text that two files have in common when one may stand for the other. */
export function memberId({ path, mode, sha256 }: PackMember): string {
  return `${sha256} ${mode.toString(8)} ${path}`;
}

/** A pack that is full, or the last one. */
export interface NewPack {
  readonly index: PackIndex;
  readonly content: Buffer;
}

/** Gathers files until there is a pack of them. Holds no more than one pack in memory. */
export class PackBuilder {
  #blocks: Buffer[] = [];
  #members: PackMember[] = [];
  #size = 0;

  /** Returns the pack that this file made full. */
  add(file: PackedFile, content: Buffer): NewPack | undefined {
    const member: TarMember = { ...file, content };
    const block = tarMember(member);
    this.#blocks.push(block);
    this.#members.push({ path: file.path, mode: file.mode, sha256: file.sha256 });
    this.#size += block.length;
    return this.#size >= packSize ? this.close() : undefined;
  }

  /** What was gathered so far; undefined when that is nothing. */
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

/** The SHA-256 of a content, in hex. */
export function sha256Of(content: Buffer | string): string {
  return createHash('sha256').update(content).digest('hex');
}

/**
 * Which of the known packs a tree can be put together from, and which of its files are in them. What else is in such a pack is taken away again
 * where it is unpacked, so that it does not matter what the tree has there.
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
    const wanted = new Set(useful.map(memberId));
    for (const id of wanted) {
      missing.delete(id);
      covered.add(id);
    }
    packs.push({
      sha256,
      size,
      surplus: surplusOf(
        members.filter((member) => !wanted.has(memberId(member))),
        useful,
        kinds,
      ),
    });
  }
  return { packs, covered };
}

/** The topmost paths that only unwanted members have. */
function surplusOf(unwanted: readonly PackMember[], useful: readonly PackMember[], kinds: ReadonlyMap<string, string>): readonly string[] {
  const needed = new Set(useful.flatMap(({ path }) => [path, ...foldersOf(path)]));
  const surplus = new Set<string>();
  for (const { path } of unwanted) {
    // A folder of the tree may stay although nothing of it is in this pack.
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

/** Whether a value read from a bucket has the form of what a pack holds. */
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
