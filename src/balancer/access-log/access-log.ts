import { closeSync, fstatSync, mkdirSync, openSync, renameSync, statSync, write, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import { messageOf } from '../../shared/errors.ts';
import { accessLine } from './access-line.ts';
import type { AccessRecord } from './access-record.ts';

const flushEveryMs = 200;
const flushAtCharacters = 65_536;
const rotateAtBytes = 67_108_864;
/** When the disk is too slow, the log drops lines instead of using more memory. */
const maxWaitingCharacters = 8_388_608;

const lineEnd = 0x0a;

/** What the access log needs from its caller. */
export interface AccessLogOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly onError: (message: string) => void;
  readonly onLost: (lines: number) => void;
  /** Exactly one of the writers to a file moves it aside when it is full; the others detect the move. */
  readonly rotates: boolean;
  /** Bytes after which the writer moves the file to `PATH.1` and starts a new one. */
  readonly rotateAt?: number;
}

/**
 * Appends one JSON line per request, in batches; never delays a request. Keeps at most two files of 64 MiB.
 *
 * Several threads and processes may write to one file. One call appends each batch of whole lines, so lines of
 * different writers never mix (open(2), O_APPEND). Lines are in the order of their batches.
 */
export class AccessLog {
  readonly #options: AccessLogOptions;
  readonly #rotateAt: number;
  #rotates: boolean;
  /** Undefined while the file cannot be opened: the balancer still serves requests. */
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

  /** From now on another process moves the full file aside. */
  leaveRotation(): void {
    this.#rotates = false;
  }

  /** Writes the pending lines and closes the file. The caller must add no lines after this. */
  async close(): Promise<void> {
    // The file must not be closed during a write.
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

  /** Another writer or an outside program may have moved the open file away. */
  #reopenIfMoved(): void {
    if (this.#file !== undefined && this.#isOurs()) return;
    this.#closeFile();
    this.#open();
  }

  #isOurs(): boolean {
    try {
      return statSync(this.#options.path).ino === this.#inode;
    } catch {
      // The file is gone or unreachable; opening it reports the error.
      return false;
    }
  }

  #closeFile(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #flush(): void {
    if (this.#isWriting || this.#waiting === '') return;
    this.#reopenIfMoved();
    // A disk without space can cut a line short. The line end keeps its rest from corrupting the next line.
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
        // The torn line was counted when it was torn.
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
      // The previous or next process may have moved the file a moment ago; then the file at the path is not full.
      if (this.#file === undefined || fstatSync(this.#file).size < this.#rotateAt || !this.#isOurs()) return;
      renameSync(path, `${path}.1`);
      this.#closeFile();
      this.#open();
    } catch (error) {
      this.#report(error);
    }
  }

  /** Reports once per series of failures: otherwise a full disk would fill the process's own log too. */
  #report(error: unknown): void {
    if (!this.#isFailing) this.#options.onError(`The access log could not be written: ${messageOf(error)}`);
    this.#isFailing = true;
  }
}

function linesIn(batch: Buffer, from: number): number {
  let lines = 0;
  for (let at = batch.indexOf(lineEnd, from); at >= 0; at = batch.indexOf(lineEnd, at + 1)) lines += 1;
  return lines;
}
