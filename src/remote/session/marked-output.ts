import { endMark, startMark } from './session-script.ts';

const nothing = Buffer.alloc(0);

/** Most of what is kept of what a shell says before the command's start, bytes: one may never stop saying it. */
const maxForeignBytes = 65_536;

/** Longest that is looked at for an exit code, bytes. */
const maxCodeBytes = 32;

/**
 * One output of a session, from which what is the command's is cut out: after the start mark, before the end mark. What comes before is kept as
 * `foreign`: it is of ssh or of the user's shell.
 */
export class MarkedOutput {
  readonly #start: Buffer;
  readonly #end: Buffer;
  readonly #onBytes: (bytes: Buffer) => void;
  #held: Buffer = nothing;
  #exitCode: number | undefined;
  #isStarted = false;

  constructor(token: string, onBytes: (bytes: Buffer) => void) {
    this.#start = Buffer.from(startMark(token));
    this.#end = Buffer.from(endMark(token));
    this.#onBytes = onBytes;
  }

  /** Whether the command was started. */
  get isStarted(): boolean {
    return this.#isStarted;
  }

  /** Of the command; undefined until it has ended. */
  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  /** What was said before the command was started. */
  get foreign(): string {
    return this.#isStarted ? '' : this.#held.toString('utf8');
  }

  /** Takes bytes as they came. */
  push(chunk: Buffer): void {
    if (this.#exitCode !== undefined) return;
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    if (!this.#isStarted) {
      const at = this.#held.indexOf(this.#start);
      if (at < 0) {
        // Twice as much is gathered before it is cut, so that little is copied.
        if (this.#held.length > 2 * maxForeignBytes) this.#held = Buffer.from(this.#held.subarray(-maxForeignBytes));
        return;
      }
      this.#isStarted = true;
      this.#held = this.#held.subarray(at + this.#start.length);
    }
    const end = this.#held.indexOf(this.#end);
    // What may be the beginning of the end mark is held back until more is known.
    this.#give(end < 0 ? this.#held.length - prefixLength(this.#held, this.#end) : end);
    if (end < 0) return;
    // An exit code is short; a shell that is not ours may say anything there, and for ever.
    this.#held = Buffer.from(this.#held.subarray(0, this.#end.length + maxCodeBytes));
    const code = /^(\d+);\n/.exec(this.#held.subarray(this.#end.length).toString('latin1'))?.[1];
    if (code !== undefined) this.#exitCode = Number(code);
  }

  #give(length: number): void {
    if (length > 0) this.#onBytes(this.#held.subarray(0, length));
    this.#held = this.#held.subarray(length);
  }
}

/** How many of the last bytes are the first ones of `mark`. */
function prefixLength(bytes: Buffer, mark: Buffer): number {
  for (let length = Math.min(bytes.length, mark.length - 1); length > 0; length -= 1) {
    if (bytes.subarray(bytes.length - length).equals(mark.subarray(0, length))) return length;
  }
  return 0;
}
