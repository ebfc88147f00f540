import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { SshHost } from '../../domain/ssh-pool.ts';
import { writeFileAtomic } from '../../shared/atomic-file.ts';
import { hasErrno } from '../../shared/errors.ts';
import { isObject } from '../../shared/is-object.ts';
import { readJsonFile } from '../../shared/parse-json.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { isMachineRecord, type MachineRecord } from './machine-record.ts';

/** A machine that this home asked a host for, and how that host is reached, should its pool be gone by then. */
export interface IndexEntry {
  readonly pool: string;
  readonly host: SshHost;
  readonly name: string;
  readonly tags: Readonly<Record<string, string>>;
  /** ms since the epoch, when it was asked for. */
  readonly askedAt: number;
  /** What the host made; undefined while nobody knows whether it did. */
  readonly record: MachineRecord | undefined;
}

const ending = '.json';

/**
 * The machines that this home asked for, one file each, written before the host is asked: so that a host that cannot be reached is known to have
 * something, and one that has nothing of ours holds nobody up. The truth about a machine is on its host.
 */
export class MachineIndex {
  readonly #dir: string;

  constructor(paths: HomePaths) {
    this.#dir = join(paths.sshDir, 'machines');
  }

  list(): readonly IndexEntry[] {
    return this.#names().flatMap((file) => this.#read(file) ?? []);
  }

  get(pool: string, host: string, name: string): IndexEntry | undefined {
    return this.#read(fileOf(pool, host, name));
  }

  put(entry: IndexEntry): void {
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    writeFileAtomic(join(this.#dir, fileOf(entry.pool, entry.host.host, entry.name)), JSON.stringify(entry));
  }

  /** Gone already is success. */
  remove(pool: string, host: string, name: string): void {
    rmSync(join(this.#dir, fileOf(pool, host, name)), { force: true });
  }

  #names(): readonly string[] {
    try {
      return readdirSync(this.#dir).filter((name) => name.endsWith(ending));
    } catch (error) {
      if (hasErrno(error, 'ENOENT')) return [];
      throw error;
    }
  }

  #read(file: string): IndexEntry | undefined {
    // Removed meanwhile, or of no use: then the host is asked without it.
    const value = readJsonFile(join(this.#dir, file))?.value;
    return isEntry(value) ? { ...value, record: isMachineRecord(value.record) ? value.record : undefined } : undefined;
  }
}

/** Names of pools and hosts can be too long for a file's name. */
function fileOf(pool: string, host: string, name: string): string {
  return `${name}-${createHash('sha256').update(`${pool}\n${host}`).digest('hex').slice(0, 8)}${ending}`;
}

function isEntry(value: unknown): value is IndexEntry {
  return (
    isObject(value) &&
    typeof value['pool'] === 'string' &&
    typeof value['name'] === 'string' &&
    typeof value['askedAt'] === 'number' &&
    isObject(value['host']) &&
    typeof value['host']['host'] === 'string' &&
    isObject(value['tags'])
  );
}
