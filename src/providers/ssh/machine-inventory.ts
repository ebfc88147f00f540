import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { SshHost } from '../../domain/config.ts';
import { isObject } from '../../shared/json.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { IntentLog } from '../intent-log.ts';
import { isMachineRecord, type MachineRecord } from './machine-record.ts';

/** `host` reaches the SSH host even when its pool is gone. */
interface InventoryEntry {
  readonly pool: string;
  readonly host: SshHost;
  readonly name: string;
  readonly tags: Readonly<Record<string, string>>;
  /** Time of the request, ms since the epoch. */
  readonly askedAt: number;
  /** Undefined while it is unknown whether the SSH host created it. */
  readonly record: MachineRecord | undefined;
}

/** Intent log: which unreachable SSH hosts may have machines of this home. The true record is on the SSH host. */
export class MachineInventory {
  readonly #intents: IntentLog<InventoryEntry>;

  constructor(paths: HomePaths) {
    this.#intents = new IntentLog({ dir: join(paths.sshDir, 'machines'), ending: '.json', read: readEntry });
  }

  list(): readonly InventoryEntry[] {
    return this.#intents.list();
  }

  get(pool: string, host: string, name: string): InventoryEntry | undefined {
    return this.#intents.get(intentName(pool, host, name));
  }

  put(entry: InventoryEntry): void {
    this.#intents.record(intentName(entry.pool, entry.host.host, entry.name), entry);
  }

  remove(pool: string, host: string, name: string): void {
    this.#intents.forget(intentName(pool, host, name));
  }
}

/** Names of pools and SSH hosts can be too long for a file's name. */
function intentName(pool: string, host: string, name: string): string {
  return `${name}-${createHash('sha256').update(`${pool}\n${host}`).digest('hex').slice(0, 8)}`;
}

function readEntry(value: unknown): InventoryEntry | undefined {
  return isEntry(value) ? { ...value, record: isMachineRecord(value.record) ? value.record : undefined } : undefined;
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
