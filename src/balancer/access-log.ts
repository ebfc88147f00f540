import { closeSync, fstatSync, mkdirSync, openSync, renameSync, write, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '../shared/clock.ts';
import { messageOf } from '../shared/errors.ts';
import { accessLine } from './access-line.ts';
import type { AccessRecord } from './access-record.ts';

const flushEveryMs = 200;
const flushAtCharacters = 65_536;
const rotateAtBytes = 67_108_864;
/** A disk that cannot follow loses lines rather than memory. */
const maxWaitingCharacters = 8_388_608;

/** What the log needs from outside. */
export interface AccessLogOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly onError: (message: string) => void;
  /** Bytes after which the file is moved to `PATH.1` and begun anew. */
  readonly rotateAt?: number;
}

/** Appends one JSON line for each request, in batches; never holds up a request. Two files of 64 MiB at most. */
export class AccessLog {
  readonly #options: AccessLogOptions;
  readonly #rotateAt: number;
  /** Undefined while it cannot be opened: requests are served all the same. */
  #file: number | undefined;
  #size = 0;
  #waiting = '';
  #isWriting = false;
  #lost = 0;
  #isFailing = false;
  #onWritten: (() => void) | undefined;

  constructor(options: AccessLogOptions) {
    this.#options = options;
    this.#rotateAt = options.rotateAt ?? rotateAtBytes;
    this.#open();
    options.clock.every(flushEveryMs, () => this.#flush());
  }

  add(record: AccessRecord): void {
    if (this.#waiting.length > maxWaitingCharacters) {
      this.#lost += 1;
      return;
    }
    this.#waiting += accessLine(record);
    if (this.#waiting.length >= flushAtCharacters) this.#flush();
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
      this.#size = fstatSync(this.#file).size;
    } catch (error) {
      this.#report(error);
    }
  }

  #flush(): void {
    if (this.#isWriting || this.#waiting === '') return;
    if (this.#file === undefined) this.#open();
    const batch = Buffer.from(this.#waiting);
    this.#waiting = '';
    if (this.#file === undefined) return;
    this.#isWriting = true;
    this.#writeAll(this.#file, batch, 0);
  }

  #writeAll(file: number, batch: Buffer, from: number): void {
    write(file, batch, from, batch.length - from, null, (error, written) => {
      if (error === null && from + written < batch.length) return this.#writeAll(file, batch, from + written);
      this.#isWriting = false;
      if (error === null) this.#settle(batch.length);
      else this.#report(error);
      return this.#onWritten?.();
    });
  }

  #settle(written: number): void {
    this.#isFailing = false;
    this.#size += written;
    if (this.#lost > 0) this.#options.onError(`The access log lost ${this.#lost} lines because the disk was too slow.`);
    this.#lost = 0;
    if (this.#size >= this.#rotateAt) this.#rotate();
  }

  #rotate(): void {
    try {
      renameSync(this.#options.path, `${this.#options.path}.1`);
      if (this.#file !== undefined) closeSync(this.#file);
      this.#file = undefined;
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
