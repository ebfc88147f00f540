import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomic } from '../../shared/system/files.ts';
import type { HomePaths } from '../../shared/paths.ts';

/** Folder of a home's data about a cloud, below SVC_HOME: `ssh/CLOUD/`. */
export function cloudDir(paths: Pick<HomePaths, 'sshDir'>, cloud: string): string {
  return join(paths.sshDir, cloud);
}

/**
 * Intent log of a home at one cloud: the resources that it is about to create. An intent is on disk before the request
 * is sent. A crash at any instruction leaves only resources that later sweeps find. Each intent is a file `KIND/NAME`.
 */
export class IntentLog {
  readonly #dir: string;

  constructor(paths: Pick<HomePaths, 'sshDir'>, cloud: string) {
    this.#dir = cloudDir(paths, cloud);
  }

  /** Records an intent; `content` replaces that of an earlier one of the same name. */
  record(kind: string, name: string, content = ''): void {
    if (this.content(kind, name) !== content) writeFileAtomic(this.#file(kind, name), content);
  }

  /** Removes an intent: its resource is gone, or was refused. */
  forget(kind: string, name: string): void {
    rmSync(this.#file(kind, name), { force: true });
  }

  /** Every name of a kind. */
  names(kind: string): readonly string[] {
    const dir = join(this.#dir, kind);
    if (!existsSync(dir)) return [];
    const files = readdirSync(dir).filter((name) => !name.endsWith('.tmp'));
    return files.map(decodeURIComponent);
  }

  has(kind: string, name: string): boolean {
    return this.names(kind).includes(name);
  }

  /** The content of an intent; undefined when there is none. */
  content(kind: string, name: string): string | undefined {
    return this.has(kind, name) ? readFileSync(this.#file(kind, name), 'utf8') : undefined;
  }

  #file(kind: string, name: string): string {
    return join(this.#dir, kind, encodeURIComponent(name));
  }
}
