import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomic } from '../../shared/system/files.ts';
import { hasErrno } from '../../shared/errors.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { randomHex } from '../../shared/hex.ts';
import { writeEnterFiles } from './machine-files.ts';
import { filesIn, machineFiles, machinesDir, parseMachineRecord, type MachineFiles, type MachineRecord } from './machine-record.ts';

const idPattern = /^[a-z0-9]+$/;
const unfinishedPrefix = '.new-';

/** The local machines as folders. They exist without a running process. */
export class MachineStore {
  readonly paths: HomePaths;

  constructor(paths: HomePaths) {
    this.paths = paths;
  }

  /** Lock of operations that must see all machines at once. */
  get lockFile(): string {
    return join(this.paths.localDir, 'machines.lock');
  }

  files(id: string): MachineFiles {
    return machineFiles(this.paths, id);
  }

  /** Undefined when there is no such machine. */
  read(id: string): MachineRecord | undefined {
    if (!idPattern.test(id)) return undefined;
    try {
      return parseMachineRecord(readFileSync(this.files(id).record, 'utf8'));
    } catch (error) {
      if (hasErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
      throw error;
    }
  }

  list(): readonly MachineRecord[] {
    return this.#names().flatMap((name) => this.read(name) ?? []);
  }

  /**
   * Creates a machine's folder atomically: it exists with all its files, or not at all. The caller must hold the lock.
   */
  add(record: MachineRecord): void {
    const dir = machinesDir(this.paths);
    for (const name of this.#names()) if (name.startsWith(unfinishedPrefix)) rmSync(join(dir, name), { recursive: true, force: true });
    const unfinished = join(dir, `${unfinishedPrefix}${record.id}-${randomHex(6)}`);
    mkdirSync(unfinished, { recursive: true, mode: 0o700 });
    mkdirSync(this.paths.runtimeDir, { recursive: true, mode: 0o700 });
    // Only the folder is renamed; the paths of sockets do not change.
    writeEnterFiles(filesIn(unfinished, this.paths.runtimeDir, record.id), this.paths, record.isolation, record.outbound);
    writeFileSync(join(unfinished, 'machine.json'), JSON.stringify(record), { mode: 0o600 });
    renameSync(unfinished, this.files(record.id).dir);
  }

  replace(record: MachineRecord): void {
    writeFileAtomic(this.files(record.id).record, JSON.stringify(record));
  }

  #names(): readonly string[] {
    try {
      return readdirSync(machinesDir(this.paths));
    } catch (error) {
      if (hasErrno(error, 'ENOENT')) return [];
      throw error;
    }
  }
}
