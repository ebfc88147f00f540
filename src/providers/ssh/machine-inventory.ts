import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { SshHost } from '../../domain/ssh-pool.ts';
import { writeFileAtomic } from '../../shared/system/files.ts';
import { hasErrno } from '../../shared/errors.ts';
import { isObject } from '../../shared/is-object.ts';
import { readJsonFile } from '../../shared/parse-json.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { isMachineRecord, type MachineRecord } from './machine-record.ts';

/** A machine that this home requested, and how to reach its SSH host even when its pool is gone. */
interface InventoryEntry {
  readonly pool: string;
  readonly host: SshHost;
  readonly name: string;
  readonly tags: Readonly<Record<string, string>>;
  /** Time of the request, ms since the epoch. */
  readonly askedAt: number;
  /** The created machine; undefined while it is unknown whether the SSH host created it. */
  readonly record: MachineRecord | undefined;
}

const ending = '.json';

/**
 * Intent log of the machines that this home requested: one file each, written before the request. It shows which
 * unreachable SSH hosts may have a machine; an SSH host without entries blocks nothing. The authoritative record of a
 * machine is on its SSH host.
 */
export class MachineInventory {
  readonly #dir: string;

  constructor(paths: HomePaths) {
    this.#dir = join(paths.sshDir, 'machines');
  }

  list(): readonly InventoryEntry[] {
    return this.#names().flatMap((file) => this.#read(file) ?? []);
  }

  get(pool: string, host: string, name: string): InventoryEntry | undefined {
    return this.#read(fileOf(pool, host, name));
  }

  put(entry: InventoryEntry): void {
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    writeFileAtomic(join(this.#dir, fileOf(entry.pool, entry.host.host, entry.name)), JSON.stringify(entry));
  }

  /** Succeeds when the entry is already gone. */
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

  #read(file: string): InventoryEntry | undefined {
    // An entry that was removed meanwhile, or is unreadable, counts as absent: the SSH host is asked without it.
    const value = readJsonFile(join(this.#dir, file))?.value;
    return isEntry(value) ? { ...value, record: isMachineRecord(value.record) ? value.record : undefined } : undefined;
  }
}

/** Names of pools and SSH hosts can be too long for a file's name. */
function fileOf(pool: string, host: string, name: string): string {
  return `${name}-${createHash('sha256').update(`${pool}\n${host}`).digest('hex').slice(0, 8)}${ending}`;
}

function isEntry(value: unknown): value is InventoryEntry {
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
