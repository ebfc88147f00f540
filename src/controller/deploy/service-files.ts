import { existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { scanTree } from '../../provision/files/scan.ts';
import { randomHex } from '../../shared/hex.ts';
import { SvcError } from '../../shared/errors.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Logger } from '../../shared/log.ts';
import type { Store } from '../../store/store.ts';
import { isHomeList } from '../shared-homes.ts';
import { packTree, readPackedTree, unpackTree } from './service-files-pack.ts';

/** Size limit of kept files, bytes: every controller that takes over has to fetch them. */
const largest = 1_073_741_824;
/** Delay before a failed fetch is retried, ms. */
const retryMs = 1_000;

/** The record of an owner's buckets. Only this kept file changes, so callers fetch it before they rely on it. */
export const bucketsRecord = 'buckets.json';

/**
 * Files of services and clusters that another controller would need. A database that controllers on several machines
 * share keeps them too; a controller's own database does not.
 */
export interface ServiceFiles {
  /** Stores a folder. Await it before recording anything that needs it. Throws SVC_NOT_SUPPORTED when it is too big. */
  save(owner: string, name: string, path: string): Promise<void>;
  /** Restores one folder atomically unless it exists. Creates its parent folders. */
  restore(owner: string, name: string, path: string): Promise<void>;
  /** The same for files that another controller may have changed: replaces the local copy. */
  renew(owner: string, name: string, path: string): Promise<void>;
  /** Restores all unchanging files of an owner, each below `dir` by its name. */
  restoreAll(owner: string, dir: string): Promise<void>;
  remove(owner: string): Promise<void>;
}

/** The files of a store. `limit` is for tests. */
export function serviceFiles(store: Store, limit = largest): ServiceFiles {
  if (!store.isShared) return nothing;
  const { files } = store;
  const bring = async (owner: string, name: string, path: string, text: string | undefined): Promise<void> => {
    if (text === undefined) return;
    const tree = readPackedTree(text);
    const temporary = join(dirname(path), `.${basename(path)}.${randomHex(6)}.tmp`);
    try {
      await unpackTree(tree, temporary, async (sha256) => {
        const content = await files.block(owner, sha256);
        if (content === undefined) throw new SvcError('SVC_STATE_CORRUPT', `The state database lacks a part of ${name} of ${owner}.`);
        return content;
      });
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { recursive: true, force: true });
      throw error;
    }
  };
  const bringMissing = async (owner: string, name: string, path: string, text: string | undefined): Promise<void> => {
    try {
      await bring(owner, name, path, text);
    } catch (error) {
      // Another caller created it first.
      if (!existsSync(path)) throw error;
    }
  };
  return {
    async save(owner, name, path) {
      if (!existsSync(path)) return;
      const { entries } = await scanTree(path);
      const size = entries.reduce((sum, entry) => sum + (entry.kind === 'file' ? entry.size : 0), 0);
      if (size > limit) throw tooBig(size, limit);
      const known = new Set(await files.blocks(owner));
      const tree = await packTree(path, entries, async (sha256, content) => {
        if (!known.has(sha256)) await files.addBlock(owner, sha256, content);
        known.add(sha256);
      });
      await files.setTree(owner, name, JSON.stringify(tree));
    },

    async restore(owner, name, path) {
      if (!existsSync(path)) await bringMissing(owner, name, path, await files.tree(owner, name));
    },

    async renew(owner, name, path) {
      await bring(owner, name, path, await files.tree(owner, name));
    },

    async restoreAll(owner, dir) {
      for (const [name, text] of await files.trees(owner)) {
        const path = join(dir, name);
        if (name !== bucketsRecord && !existsSync(path)) await bringMissing(owner, name, path, text);
      }
    },

    remove: (owner) => files.remove(owner),
  };
}

/** Deletes files of owners without a record, left by a crash. Only for a leader that is not creating anything yet. */
export async function sweepFiles(store: Store): Promise<void> {
  if (!store.isShared) return;
  const recorded = [...(await store.services.list()), ...(await store.clusters.list())].map(({ key }) => key);
  const lost = (await store.files.owners()).filter((owner) => !recorded.includes(owner) && !isHomeList(owner));
  for (const owner of lost) await store.files.remove(owner);
}

/** Restores all files of an owner, which every launch needs. Retries until it succeeds or the signal aborts. */
export async function restorePatiently(
  files: ServiceFiles,
  { owner, dir }: { readonly owner: string; readonly dir: string },
  { clock, log, signal }: { readonly clock: Clock; readonly log: Logger; readonly signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    try {
      return await files.restoreAll(owner, dir);
    } catch (error) {
      log.warn({ err: error }, 'its files could not be fetched from the database; it is tried again');
      await clock.sleep(retryMs, signal);
    }
  }
}

const nothing: ServiceFiles = {
  save: async () => undefined,
  restore: async () => undefined,
  renew: async () => undefined,
  restoreAll: async () => undefined,
  remove: async () => undefined,
};

function tooBig(size: number, limit: number): SvcError {
  const [has, may] = [size, limit].map((bytes) => Math.ceil(bytes / 1_048_576));
  return new SvcError(
    'SVC_NOT_SUPPORTED',
    `The working directory and the files to mount are ${has} MiB; with a state database at most ${may} MiB can be kept for other controllers.`,
    {
      hint: 'Name what replicas do not need in .svcignore, or let `setup` or a mount fetch large files from a bucket.',
    },
  );
}
