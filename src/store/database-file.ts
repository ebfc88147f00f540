import { existsSync, readFileSync, renameSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { writeFileAtomic } from '../shared/system/files.ts';
import type { CancelTimer, Clock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import { isObject, parseJson } from '../shared/json.ts';
import { explainSqliteError, isNoDatabase } from './sqlite-errors.ts';

/** Interval of comparisons between the open database and the file at its path, ms. */
const checkEveryMs = 1_000;
/** Consecutive findings until the file counts as replaced: one may come from a checkpoint that is writing the page. */
const findingsNeeded = 2;

/** Identifies one state of a database: its id, and its number of changes. */
interface Mark {
  readonly id: string;
  readonly changes: number;
}

/** The last known state, stored beside the file; the next process compares. `place`, `log`: device and inode. */
interface Seal extends Mark {
  readonly place: string;
  readonly log: string | null;
}

const logOf = (path: string): string => `${path}-wal`;
const sealOf = (path: string): string => `${path}.seal`;

/**
 * The mark in the main file alone, without its write-ahead log, so a file copied over it in place is read as it is now.
 * `none`: a database without a mark; undefined: no database, or not readable now. SQLite opens the file: closing it by
 * other means would drop this process's locks on it.
 */
function readMark(path: string): Mark | 'none' | undefined {
  try {
    return readMarkOrThrow(path);
  } catch {
    return undefined;
  }
}

/**
 * Throws SQLite's error for a file that is not a database. Call it before the file is opened for writing: SQLite would
 * delete the log beside it, which may hold the only remaining data.
 */
export function refuseForeignFile(path: string): void {
  if (sizeOf(path) === 0) return;
  try {
    readMarkOrThrow(path);
  } catch (error) {
    // Any other error may come from an interrupted checkpoint. SQLite repairs that from the log.
    if (isNoDatabase(error)) throw explainSqliteError(error, path);
  }
}

function readMarkOrThrow(path: string): Mark | 'none' {
  const url = pathToFileURL(path);
  url.searchParams.set('immutable', '1');
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(url, { readOnly: true });
    if (database.prepare("select 1 from sqlite_master where name = 'database_identity'").get() === undefined) return 'none';
    const row: unknown = database.prepare('select id, changes from database_identity').get();
    return isMark(row) ? { id: row.id, changes: row.changes } : 'none';
  } finally {
    database?.close();
  }
}

/**
 * Seals a copy as if a later state had existed, so that its next user knows that it is a copy: machines may have been
 * launched since. Throws SQLite's error when the copy cannot be read.
 */
export function sealAsOlder(path: string): void {
  const mark = readMarkOrThrow(path);
  if (mark !== 'none')
    writeFileAtomic(sealOf(path), JSON.stringify({ ...mark, changes: mark.changes + 1, place: '', log: null } satisfies Seal));
}

/** Device and inode; undefined when there is no file. Throws when the file cannot be inspected. */
function fileIdOf(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`;
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** How the file differs from the one last used; undefined: it does not differ, or the last one is unknown. */
export function whyReplaced(path: string): string | undefined {
  const seal = readSeal(path);
  if (sizeOf(path) === 0) {
    const isLeft = seal !== undefined || sizeOf(logOf(path)) > 0;
    return isLeft ? (existsSync(path) ? 'it is empty' : 'it is gone') : undefined;
  }
  if (seal === undefined) return undefined;
  const mark = readMark(path);
  // A file that cannot be read is refused when it is opened, and stays unchanged.
  return mark === undefined ? undefined : compare(mark, seal);
}

function compare(mark: Mark | 'none', last: Mark): string | undefined {
  if (mark === 'none') return 'it is from before this version of svc';
  if (mark.id !== last.id) return 'it is another database';
  return mark.changes < last.changes ? 'it is an older copy' : undefined;
}

/**
 * Moves aside the write-ahead log of a database that is gone: SQLite would replay it into the file that replaced it. A
 * log that came with the new file stays. Call it while no process has the database open. Returns the moved files.
 */
export function setAsideForeignLog(path: string, now: number): readonly string[] {
  const seal = readSeal(path);
  const isReplaced =
    whyReplaced(path) !== undefined || (seal !== undefined && readMark(path) !== undefined && fileIdOf(path) !== seal.place);
  const log = logOf(path);
  const isForeign = isReplaced && (seal === undefined || seal.log === (fileIdOf(log) ?? null));
  if (!isForeign || sizeOf(log) === 0) return [];
  const suffix = `.${new Date(now).toISOString().replace(/[:.]/g, '')}`;
  return [log, `${path}-shm`].filter(existsSync).map((file) => {
    renameSync(file, `${file}${suffix}`);
    return `${file}${suffix}`;
  });
}

/** An open database file. Detects that another file, or another state of the database, is now at its path. */
export class DatabaseFile {
  readonly path: string;
  /** How the opened file differed from the one used before; undefined when it did not. */
  readonly replaced: string | undefined;
  /** Files of the former database that were moved aside. */
  readonly setAside: readonly string[];
  #fileId = '';
  #log: string | undefined;
  #mark: Mark = { id: '', changes: 0 };
  /** Whether the mark has reached the main file. Before that the file cannot be compared. */
  #isArmed = false;
  /** The number of changes in the seal on disk, as far as this process wrote it. */
  #sealed = -1;
  #checkpoint: () => Promise<unknown> = () => Promise.resolve();
  #hasWritten = false;

  constructor(path: string, replaced: string | undefined, setAside: readonly string[] = []) {
    this.path = path;
    this.setAside = setAside;
    this.replaced = replaced;
  }

  /** Call it on the open database. `checkpoint` writes the log to the main file, as far as other processes allow. */
  async begin(id: string, checkpoint: () => Promise<unknown>): Promise<void> {
    this.#checkpoint = checkpoint;
    await checkpoint();
    this.#fileId = fileIdOf(this.path) ?? '';
    this.#log = fileIdOf(logOf(this.path));
    this.#mark = { id, changes: 0 };
    this.#learn(readMark(this.path));
    if (this.#isArmed) this.#seal(this.#mark);
  }

  get isReplaced(): boolean {
    return this.#finding(true) !== undefined;
  }

  /** Call it before each write. Throws SVC_STATE_REPLACED when no process would ever read the written data. */
  assertCurrent(): void {
    const why = this.#finding(false);
    if (why !== undefined) throw stateReplaced(this.path, why);
    this.#hasWritten = true;
  }

  /** Calls `onReplaced` once when another file or state has replaced the open one. */
  watch(clock: Clock, onReplaced: (why: string) => void): CancelTimer {
    let findings = 0;
    const cancel = clock.every(checkEveryMs, () => {
      const before = this.#mark;
      const why = this.#finding(true);
      // Only a state seen one check ago is sealed, because it is on the disk by now. After a loss of power the seal
      // must not be newer than the file.
      if (why === undefined && this.#isArmed && before.changes > this.#sealed) this.#seal(before);
      findings = why === undefined ? 0 : findings + 1;
      if (why === undefined) this.#keepMainFileNew();
      if (why === undefined || findings < findingsNeeded) return;
      cancel();
      onReplaced(why);
    });
    return cancel;
  }

  /** Checkpoints soon after a write: an older copy over the main file shows only if that was up to date. */
  #keepMainFileNew(): void {
    if (!this.#hasWritten) return;
    this.#hasWritten = false;
    void this.#checkpoint().catch(() => (this.#hasWritten = true));
  }

  /** `unreadable`: whether a main file that cannot be read counts as a finding. */
  #finding(unreadable: boolean): string | undefined {
    let fileId: string | undefined;
    let log: string | undefined;
    try {
      fileId = fileIdOf(this.path);
      log = fileIdOf(logOf(this.path));
    } catch {
      // A folder that cannot be inspected gives no information about the file.
      return undefined;
    }
    if (fileId === undefined) return 'it is gone';
    if (fileId !== this.#fileId) return 'another file took its place';
    if (this.#isArmed && sizeOf(this.path) === 0) return 'it is empty';
    if (this.#log !== undefined && log !== this.#log) return 'its write-ahead log (-wal) was removed or replaced';
    const mark = readMark(this.path);
    if (!this.#isArmed || mark === undefined) {
      this.#learn(mark);
      return this.#isArmed && mark === undefined && unreadable ? 'it cannot be read any more' : undefined;
    }
    const why = compare(mark, this.#mark);
    if (why === undefined) this.#learn(mark);
    return why;
  }

  #learn(mark: Mark | 'none' | undefined): void {
    if (mark === undefined || mark === 'none' || mark.id !== this.#mark.id) return;
    this.#isArmed = true;
    this.#mark = mark;
  }

  #seal(mark: Mark): void {
    this.#sealed = mark.changes;
    const known = readSeal(this.path);
    const log = this.#log ?? null;
    if (known?.id === mark.id && known.changes >= mark.changes && known.place === this.#fileId && known.log === log) return;
    try {
      writeFileAtomic(sealOf(this.path), JSON.stringify({ ...mark, place: this.#fileId, log } satisfies Seal));
    } catch {
      // On a full disk the next process compares with an older seal. That detects fewer replacements and causes no
      // false finding.
    }
  }
}

/** The error for a process that found its database replaced, or that may not open the new one yet. */
export function stateReplaced(path: string, why: string): SvcError {
  return new SvcError('SVC_STATE_REPLACED', `The state database ${path} was replaced while it was in use: ${why}.`, {
    hint: 'The controller restarts with the present file. Run the command again in a few seconds.',
  });
}

function readSeal(path: string): Seal | undefined {
  let text: string;
  try {
    text = readFileSync(sealOf(path), 'utf8');
  } catch {
    // There is no seal yet, so no earlier file is known.
    return undefined;
  }
  const seal = parseJson(text);
  return isSeal(seal) ? seal : undefined;
}

const isMark = (value: unknown): value is Mark =>
  isObject(value) && typeof value['id'] === 'string' && typeof value['changes'] === 'number';

function isSeal(value: unknown): value is Seal {
  return (
    isObject(value) && isMark(value) && typeof value['place'] === 'string' && (value['log'] === null || typeof value['log'] === 'string')
  );
}
