import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { hasErrno } from '../shared/errors.ts';
import type { HomePaths } from '../shared/paths.ts';
import { readIfThere, writeFileAtomic, readJsonFile } from '../shared/system/files.ts';

/** The folder of an intent log and the format of its files. */
interface IntentFiles<Intent> {
  readonly dir: string;
  /** End of each file's name, such as `.json`; empty by default. */
  readonly ending?: string;
  /** The intent in a file's JSON; undefined when it is none. The value is undefined for invalid JSON. */
  readonly read: (value: unknown) => Intent | undefined;
}

/**
 * Intent log of a home: the resources that it is about to create, one file each. An intent is on disk before the request
 * is sent. A crash at any instruction leaves only resources that later sweeps find.
 */
export class IntentLog<Intent> {
  readonly #files: IntentFiles<Intent>;

  constructor(files: IntentFiles<Intent>) {
    this.#files = files;
  }

  /** Records an intent; it replaces an earlier one of the same name. */
  record(name: string, intent: Intent): void {
    const text = JSON.stringify(intent);
    if (readIfThere(this.#file(name)) !== text) writeFileAtomic(this.#file(name), text);
  }

  /** Removes an intent: its resource is gone, or was refused. Succeeds when there is none. */
  forget(name: string): void {
    rmSync(this.#file(name), { force: true });
  }

  /** The name of each intent. */
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

  /** All intents; an unreadable one counts as absent. */
  list(): readonly Intent[] {
    return this.names().flatMap((name) => this.get(name) ?? []);
  }

  /** The intent of this name; undefined when there is none, or it is unreadable. */
  get(name: string): Intent | undefined {
    const file = readJsonFile(this.#file(name));
    return file === undefined ? undefined : this.#files.read(file.value);
  }

  #file(name: string): string {
    return join(this.#files.dir, `${encodeURIComponent(name)}${this.#files.ending ?? ''}`);
  }
}

/** Folder of a home's data about a cloud, below SVC_HOME: `ssh/CLOUD/`. */
export function cloudDir(paths: Pick<HomePaths, 'sshDir'>, cloud: string): string {
  return join(paths.sshDir, cloud);
}

/** Intents of one kind at a cloud whose names say all, such as the regions that may have machines. */
export type NamedIntents = IntentLog<true>;

/** The intents of a kind at a cloud. */
export function namedIntents(paths: Pick<HomePaths, 'sshDir'>, cloud: string, kind: 'controllers' | 'regions' | 'roles'): NamedIntents {
  return new IntentLog({ dir: join(cloudDir(paths, cloud), kind), read: () => true });
}
