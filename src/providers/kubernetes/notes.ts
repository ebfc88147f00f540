import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomic } from '../../shared/atomic-file.ts';
import { hasErrno } from '../../shared/errors.ts';
import { fingerprint } from '../../shared/fingerprint.ts';
import { isObject } from '../../shared/is-object.ts';
import { readJsonFile } from '../../shared/parse-json.ts';
import type { HomePaths } from '../../shared/paths.ts';

/** Where something of somebody's may be. */
export interface ClusterNote {
  readonly context: string;
  readonly namespace: string;
  /** Tags that all of it has; of one machine by itself, all of its tags. */
  readonly tags: Readonly<Record<string, string>>;
}

/**
 * In which contexts and namespaces this home made something for whom, one file each, written before the cluster is asked: a cluster that cannot be asked
 * and may have something holds up whoever it is of, and nobody else. Ids that somebody recorded tell of contexts as well, in a home that is new.
 */
export class ClusterNotes {
  readonly #dir: string;
  readonly #told = new Map<string, ClusterNote>();

  constructor(paths: HomePaths) {
    this.#dir = join(paths.home, 'kubernetes', 'notes');
  }

  list(): readonly ClusterNote[] {
    return [...this.#names().flatMap((name) => readNote(join(this.#dir, name)) ?? []), ...this.#told.values()];
  }

  /** Written at most once for each. */
  put(note: ClusterNote): void {
    const file = join(this.#dir, fileOf(note));
    if (readNote(file) !== undefined) return;
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    writeFileAtomic(file, JSON.stringify(note));
  }

  /** An id names this place, whoever recorded it. */
  tell(context: string, namespace: string): void {
    this.#told.set(`${context}/${namespace}`, { context, namespace, tags: {} });
  }

  /** Gone already is success. */
  remove(note: ClusterNote): void {
    rmSync(join(this.#dir, fileOf(note)), { force: true });
  }

  #names(): readonly string[] {
    try {
      return readdirSync(this.#dir).filter((name) => name.endsWith('.json'));
    } catch (error) {
      if (hasErrno(error, 'ENOENT')) return [];
      throw error;
    }
  }
}

/** Whether something that a note tells of can have all of the tags. */
export function mayHave(note: ClusterNote, tags: Readonly<Record<string, string>>): boolean {
  return Object.entries(tags).every(([name, value]) => note.tags[name] === undefined || note.tags[name] === value);
}

function fileOf({ context, namespace, tags }: ClusterNote): string {
  const sorted = Object.entries(tags).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `${fingerprint(JSON.stringify([context, namespace, sorted]))}.json`;
}

function readNote(file: string): ClusterNote | undefined {
  const note = readJsonFile(file)?.value;
  if (!isObject(note)) return undefined;
  const { context, namespace, tags } = note;
  if (typeof context !== 'string' || typeof namespace !== 'string' || !isObject(tags)) return undefined;
  const texts = Object.entries(tags).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return { context, namespace, tags: Object.fromEntries(texts) };
}
