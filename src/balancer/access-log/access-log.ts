import { closeSync, fstatSync, mkdirSync, openSync, renameSync, statSync, write, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import { messageOf } from '../../shared/errors.ts';
import { accessLine } from './access-line.ts';
import type { AccessRecord } from './access-record.ts';

const flushEveryMs = 200;
const flushAtCharacters = 65_536;
const rotateAtBytes = 67_108_864;
/** A disk that cannot follow loses lines rather than memory. */
const maxWaitingCharacters = 8_388_608;

const lineEnd = 0x0a;

/** What the log needs from outside. */
export interface AccessLogOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly onError: (message: string) => void;
  /** So many lines are lost. */
  readonly onLost: (lines: number) => void;
  /** Whether this writer moves a full file aside. One of those that write to a file does; the others see that it did. */
  readonly rotates: boolean;
  /** Bytes after which the file is moved to `PATH.1` and begun anew. */
  readonly rotateAt?: number;
}

/**
 * Appends one JSON line for each request, in batches; never holds up a request. Two files of 64 MiB at most. Several threads and processes may write
 * to one file: each batch is whole lines and is appended by one call, so lines of different writers stay apart (open(2), O_APPEND); they come in the
 * order of their batches.
 */
export class AccessLog {
  readonly #options: AccessLogOptions;
  readonly #rotateAt: number;
  #rotates: boolean;
  /** Undefined while it cannot be opened: requests are served all the same. */
  #file: number | undefined;
  #inode = 0;
  #waiting = '';
  #waitingLines = 0;
  #isWriting = false;
  /** The last batch ends in the middle of a line. */
  #isTorn = false;
  #isTooSlow = false;
  #isFailing = false;
  #onWritten: (() => void) | undefined;

  constructor(options: AccessLogOptions) {
    this.#options = options;
    this.#rotateAt = options.rotateAt ?? rotateAtBytes;
    this.#rotates = options.rotates;
    this.#open();
    options.clock.every(flushEveryMs, () => this.#flush());
  }

  add(record: AccessRecord): void {
    if (this.#waiting.length > maxWaitingCharacters) {
      if (!this.#isTooSlow) this.#options.onError('The access log loses lines because the disk is too slow.');
      this.#isTooSlow = true;
      this.#options.onLost(1);
      return;
    }
    this.#waiting += accessLine(record);
    this.#waitingLines += 1;
    if (this.#waiting.length >= flushAtCharacters) this.#flush();
  }

  /** From now on another process moves the file aside when it is full. */
  leaveRotation(): void {
    this.#rotates = false;
  }

  /** Writes what waits and closes the file; nothing may be added any more. */
  async close(): Promise<void> {
    // The file must not be closed under a write that is under way.
    if (this.#isWriting) {
      await new Promise<void>((resolve) => {
        this.#onWritten = resolve;
      });
    }
    if (this.#file !== undefined) {
      try {
        writeSync(this.#file, this.#waiting);
        closeSync(this.#file);
      } catch (error) {
        this.#report(error);
      }
    }
    this.#file = undefined;
    this.#waiting = '';
  }

  #open(): void {
    try {
      mkdirSync(dirname(this.#options.path), { recursive: true, mode: 0o700 });
      this.#file = openSync(this.#options.path, 'a', 0o600);
      this.#inode = fstatSync(this.#file).ino;
    } catch (error) {
      this.#report(error);
    }
  }

  /** Opens the file that has the path now: another writer, or somebody else, may have moved ours away. */
  #follow(): void {
    if (this.#file !== undefined && this.#isOurs()) return;
    this.#letGo();
    this.#open();
  }

  #isOurs(): boolean {
    try {
      return statSync(this.#options.path).ino === this.#inode;
    } catch {
      // It is gone, or cannot be reached any more, which opening it will say.
      return false;
    }
  }

  #letGo(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #flush(): void {
    if (this.#isWriting || this.#waiting === '') return;
    this.#follow();
    // The rest of a line that the disk had no room for would spoil the next one.
    const batch = Buffer.from(this.#isTorn ? `\n${this.#waiting}` : this.#waiting);
    const lines = this.#waitingLines;
    this.#waiting = '';
    this.#waitingLines = 0;
    if (this.#file === undefined) {
      this.#options.onLost(lines);
      return;
    }
    this.#isWriting = true;
    this.#writeAll(this.#file, batch, 0);
  }

  #writeAll(file: number, batch: Buffer, from: number): void {
    write(file, batch, from, batch.length - from, null, (error, written) => {
      if (error === null && from + written < batch.length) return this.#writeAll(file, batch, from + written);
      this.#isWriting = false;
      if (from > 0 || error === null) this.#isTorn = error !== null && batch[from - 1] !== lineEnd;
      if (error === null) this.#settle();
      else {
        this.#report(error);
        // That of the torn line was counted when it was torn.
        this.#options.onLost(linesIn(batch, from === 0 && this.#isTorn ? 1 : from));
      }
      return this.#onWritten?.();
    });
  }

  #settle(): void {
    this.#isFailing = false;
    this.#isTooSlow = false;
    if (this.#rotates && this.#onWritten === undefined) this.#rotateWhenFull();
  }

  #rotateWhenFull(): void {
    const { path } = this.#options;
    try {
      // The process before or after this one may have done it a moment ago: what has the path now is not full then.
      if (this.#file === undefined || fstatSync(this.#file).size < this.#rotateAt || !this.#isOurs()) return;
      renameSync(path, `${path}.1`);
      this.#letGo();
      this.#open();
    } catch (error) {
      this.#report(error);
    }
  }

  /** Once for each series of failures: a full disk would otherwise fill the process's own log too. */
  #report(error: unknown): void {
    if (!this.#isFailing) this.#options.onError(`The access log could not be written: ${messageOf(error)}`);
    this.#isFailing = true;
  }
}

/** Lines that end at or behind an offset. */
function linesIn(batch: Buffer, from: number): number {
  let lines = 0;
  for (let at = batch.indexOf(lineEnd, from); at >= 0; at = batch.indexOf(lineEnd, at + 1)) lines += 1;
  return lines;
}
