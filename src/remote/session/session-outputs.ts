import type { SessionEnd, SessionRequest } from './session-machine.ts';
import { endMark, startMark } from './session-script.ts';

/** Time between the end marks of both outputs, ms. A leftover process may be holding the other output. */
export const lastOutputMs = 2_000;

/** Both outputs of a session, and the command's result in them. */
export class SessionOutputs {
  readonly stdout: MarkedOutput;
  readonly stderr: MarkedOutput;

  constructor(token: string, { onStdout, onStderr }: Pick<SessionRequest, 'onStdout' | 'onStderr'>) {
    this.stdout = new MarkedOutput(token, onStdout);
    this.stderr = new MarkedOutput(token, onStderr);
  }

  /** Outputs with the command's end mark. */
  get ends(): number {
    return [this.stdout, this.stderr].filter(({ exitCode }) => exitCode !== undefined).length;
  }

  /** The command's result if a mark reported it, else what the carrier reports. */
  end(how: SessionEnd['how'], said: string): SessionEnd {
    const exitCode = this.stdout.exitCode ?? this.stderr.exitCode;
    const isStarted = this.stdout.isStarted || this.stderr.isStarted;
    return { exitCode, how: exitCode === undefined ? how : 'ended', isStarted, said: this.stderr.foreign + said };
  }
}

const nothing = Buffer.alloc(0);

/** Kept of a shell's output before the command: a login script may print without end. */
const maxForeignBytes = 65_536;

const maxCodeBytes = 32;

/** The command's part of an output, between the marks. `foreign` is the text before it, of ssh or the user's shell. */
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

  get isStarted(): boolean {
    return this.#isStarted;
  }

  /** Undefined until the command has ended. */
  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  get foreign(): string {
    return this.#isStarted ? '' : this.#held.toString('utf8');
  }

  push(chunk: Buffer): void {
    if (this.#exitCode !== undefined) return;
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    if (!this.#isStarted) {
      const at = this.#held.indexOf(this.#start);
      if (at < 0) {
        // Cuts at twice the limit, so that little is copied.
        if (this.#held.length > 2 * maxForeignBytes) this.#held = Buffer.from(this.#held.subarray(-maxForeignBytes));
        return;
      }
      this.#isStarted = true;
      this.#held = this.#held.subarray(at + this.#start.length);
    }
    const end = this.#held.indexOf(this.#end);
    // Holds back a possible beginning of the end mark.
    this.#emit(end < 0 ? this.#held.length - prefixLength(this.#held, this.#end) : end);
    if (end < 0) return;
    // An unexpected shell may print anything after the mark, without end.
    this.#held = Buffer.from(this.#held.subarray(0, this.#end.length + maxCodeBytes));
    const code = /^(\d+);\n/.exec(this.#held.subarray(this.#end.length).toString('latin1'))?.[1];
    if (code !== undefined) this.#exitCode = Number(code);
  }

  #emit(length: number): void {
    if (length > 0) this.#onBytes(this.#held.subarray(0, length));
    this.#held = this.#held.subarray(length);
  }
}

function prefixLength(bytes: Buffer, mark: Buffer): number {
  for (let length = Math.min(bytes.length, mark.length - 1); length > 0; length -= 1) {
    if (bytes.subarray(bytes.length - length).equals(mark.subarray(0, length))) return length;
  }
  return 0;
}
