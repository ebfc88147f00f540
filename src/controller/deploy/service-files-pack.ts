import { createHash } from 'node:crypto';
import { chmod, mkdir, open, readFile, symlink, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { TreeEntry } from '../../provision/files/scan.ts';
import { SvcError } from '../../shared/errors.ts';
import { isObject, parseJson } from '../../shared/json.ts';

interface Part {
  readonly sha256: string;
  readonly offset: number;
  readonly length: number;
}

/** One entry of a kept folder. A file's content is the concatenation of its parts. */
type PackedEntry =
  | Exclude<TreeEntry, { readonly kind: 'file' }>
  | (Extract<TreeEntry, { readonly kind: 'file' }> & { readonly parts: readonly Part[] });

/** A kept folder. Folders come before their content. */
interface PackedTree {
  readonly entries: readonly PackedEntry[];
}

/** Bytes of a block: small files share one, large files have several. Small enough for one SQL statement. */
const blockSize = 1_048_576;

/** Splits a scanned tree into blocks. Passes each full block to `put`. Holds at most two in memory. */
export async function packTree(
  root: string,
  entries: readonly TreeEntry[],
  put: (sha256: string, content: Uint8Array) => Promise<void>,
): Promise<PackedTree> {
  const packed: PackedEntry[] = [];
  let waiting: { readonly entry: Extract<TreeEntry, { readonly kind: 'file' }>; readonly content: Buffer }[] = [];
  let waitingSize = 0;
  const flush = async (): Promise<void> => {
    const content = Buffer.concat(waiting.map((one) => one.content));
    const sha256 = sha256Of(content);
    if (content.length > 0) await put(sha256, content);
    let offset = 0;
    for (const { entry, content: own } of waiting) {
      packed.push({ ...entry, size: own.length, parts: own.length === 0 ? [] : [{ sha256, offset, length: own.length }] });
      offset += own.length;
    }
    waiting = [];
    waitingSize = 0;
  };
  for (const entry of entries) {
    if (entry.kind !== 'file') packed.push(entry);
    else if (entry.size > blockSize) packed.push(await packLarge(root, entry, put));
    else {
      const content = await readFile(join(root, entry.path));
      if (waitingSize + content.length > blockSize) await flush();
      waiting.push({ entry, content });
      waitingSize += content.length;
    }
  }
  await flush();
  return { entries: packed };
}

async function packLarge(
  root: string,
  entry: Extract<TreeEntry, { readonly kind: 'file' }>,
  put: (sha256: string, content: Uint8Array) => Promise<void>,
): Promise<PackedEntry> {
  const parts: Part[] = [];
  const file = await open(join(root, entry.path));
  try {
    const buffer = Buffer.alloc(blockSize);
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, blockSize);
      if (bytesRead === 0) break;
      const content = buffer.subarray(0, bytesRead);
      const sha256 = sha256Of(content);
      await put(sha256, content);
      parts.push({ sha256, offset: 0, length: bytesRead });
    }
  } finally {
    await file.close();
  }
  return { ...entry, size: parts.reduce((sum, { length }) => sum + length, 0), parts };
}

/** Creates the tree below `root`, which must not exist. Verifies blocks, and reads them in order of creation. */
export async function unpackTree({ entries }: PackedTree, root: string, get: (sha256: string) => Promise<Uint8Array>): Promise<void> {
  let last: { readonly sha256: string; readonly content: Uint8Array } | undefined;
  const block = async (sha256: string): Promise<Uint8Array> => {
    if (last?.sha256 === sha256) return last.content;
    const content = await get(sha256);
    if (sha256Of(content) !== sha256) throw new SvcError('SVC_STATE_CORRUPT', 'A file that the state database keeps is not as it was.');
    last = { sha256, content };
    return content;
  };
  await mkdir(dirname(root), { recursive: true, mode: 0o700 });
  for (const entry of entries) {
    const path = join(root, entry.path);
    if (entry.kind === 'folder') await mkdir(path, { mode: 0o700 });
    else if (entry.kind === 'link') await symlink(entry.target, path);
    else {
      const file = await open(path, 'wx', 0o600);
      try {
        for (const { sha256, offset, length } of entry.parts)
          await writeFile(file, (await block(sha256)).subarray(offset, offset + length));
        await file.chmod(entry.mode);
        await file.utimes(entry.mtime, entry.mtime);
      } finally {
        await file.close();
      }
    }
  }
  // Last, and innermost first: a folder may be read-only for its owner, and writing into it changes its time.
  for (const entry of entries.toReversed()) {
    if (entry.kind !== 'folder') continue;
    const path = join(root, entry.path);
    await utimes(path, entry.mtime, entry.mtime);
    await chmod(path, entry.mode);
  }
}

/** Parses a kept folder. Throws SVC_STATE_CORRUPT when the text is invalid. */
export function readPackedTree(text: string): PackedTree {
  const value = parseJson(text);
  if (isPackedTree(value)) return value;
  throw new SvcError('SVC_STATE_CORRUPT', 'The state database has an unreadable list of files.');
}

function isPackedTree(value: unknown): value is PackedTree {
  return isObject(value) && Array.isArray(value['entries']) && value['entries'].every(isEntry);
}

function isEntry(value: unknown): boolean {
  if (!isObject(value) || !isPath(value['path'])) return false;
  if (value['kind'] === 'link') return typeof value['target'] === 'string';
  if (typeof value['mode'] !== 'number' || typeof value['mtime'] !== 'number') return false;
  return value['kind'] === 'folder' || (value['kind'] === 'file' && Array.isArray(value['parts']) && value['parts'].every(isPart));
}

function isPart(value: unknown): boolean {
  return (
    isObject(value) && typeof value['sha256'] === 'string' && typeof value['offset'] === 'number' && typeof value['length'] === 'number'
  );
}

/** Refuses paths that leave the folder. */
function isPath(value: unknown): boolean {
  return typeof value === 'string' && (value === '' || value.split('/').every((part) => !['', '.', '..'].includes(part)));
}

function sha256Of(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
