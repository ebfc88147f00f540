import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { hasErrno } from '../shared/errors.ts';
import type { HomePaths } from '../shared/paths.ts';
import { readIfThere, writeFileAtomic, readJsonFile } from '../shared/system/files.ts';

interface IntentFiles<Intent> {
  readonly dir: string;
  /** End of each file's name, such as `.json`. */
  readonly ending?: string;
  /** Undefined when the value is no intent. The value is undefined for invalid JSON. */
  readonly read: (value: unknown) => Intent | undefined;
}

/** Intents, one file each, on disk before the request is sent: after a crash, sweeps find all resources. */
export class IntentLog<Intent> {
  readonly #files: IntentFiles<Intent>;

  constructor(files: IntentFiles<Intent>) {
    this.#files = files;
  }

  /** Replaces an earlier intent of the same name. */
  record(name: string, intent: Intent): void {
    const text = JSON.stringify(intent);
    if (readIfThere(this.#file(name)) !== text) writeFileAtomic(this.#file(name), text);
  }

  /** Called when the resource is gone, or was refused. Succeeds when there is no intent. */
  forget(name: string): void {
    rmSync(this.#file(name), { force: true });
  }

  names(): readonly string[] {
    const { dir, ending = '' } = this.#files;
    try {
      const files = readdirSync(dir).filter((file) => file.endsWith(ending) && !file.endsWith('.tmp'));
      return files.map((file) => decodeURIComponent(file.slice(0, file.length - ending.length)));
    } catch (error) {
      if (hasErrno(error, 'ENOENT')) return [];
      throw error;
    }
  }

  /** An unreadable intent counts as absent. */
  list(): readonly Intent[] {
    return this.names().flatMap((name) => this.get(name) ?? []);
  }

  get(name: string): Intent | undefined {
    const file = readJsonFile(this.#file(name));
    return file === undefined ? undefined : this.#files.read(file.value);
  }

  #file(name: string): string {
    return join(this.#files.dir, `${encodeURIComponent(name)}${this.#files.ending ?? ''}`);
  }
}

/** Folder of a home's data about a cloud: `ssh/CLOUD/` below SVC_HOME. */
export function cloudDir(paths: Pick<HomePaths, 'sshDir'>, cloud: string): string {
  return join(paths.sshDir, cloud);
}

/** Intents whose names say all, such as the regions that may have machines. */
export type NamedIntents = IntentLog<true>;

/** The intents of a kind at a cloud. */
export function namedIntents(paths: Pick<HomePaths, 'sshDir'>, cloud: string, kind: 'controllers' | 'regions' | 'roles'): NamedIntents {
  return new IntentLog({ dir: join(cloudDir(paths, cloud), kind), read: () => true });
}
