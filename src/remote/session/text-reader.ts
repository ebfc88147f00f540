import { PassThrough } from 'node:stream';
import type { Clock } from '../../shared/clock.ts';
import { ended } from '../../shared/deadline.ts';
import type { SessionMachine } from './session-machine.ts';

/**
 * Answers each path with the file's lines, each after `.`, then the text after its last newline behind `=`. `!`: the
 * file is missing or cannot be read. Has only builtin commands, so an answer starts no process.
 */
const readingScript = `exec 2> /dev/null
while IFS= read -r svc_path; do
  [ -f "$svc_path" ] && {
    while IFS= read -r svc_line; do printf '.%s\\n' "$svc_line"; done
    printf '=%s\\n' "$svc_line"
  } < "$svc_path" || echo '!'
done`;

/** ms. Then the caller reads in another way, whose errors say what is wrong with the machine. */
const answerLimitMs = 5_000;

/** ms. Longer than polls of a machine are apart. A connection ends when its last session has ended. */
const idleMs = 12_000;

/** ms. A machine that refuses the session or does not answer is not asked for another one meanwhile. */
const retryMs = 30_000;

/** Of one answer. A machine is not trusted to end its lines. */
const maxAnswerBytes = 1_048_576;

/** Reads short text files of a machine over one session that stays open while it is used. */
export class TextReader {
  readonly #machine: SessionMachine;
  readonly #clock: Clock;
  #shell: ReadingShell | undefined;
  #retryAt = Number.NEGATIVE_INFINITY;

  constructor(machine: SessionMachine, clock: Clock) {
    this.#machine = machine;
    this.#clock = clock;
  }

  /** The file's text without its NUL characters. Undefined: it is missing or empty, or the machine does not answer so. */
  async read(path: string): Promise<string | undefined> {
    if (path.includes('\n') || this.#clock.monotonic() < this.#retryAt) return undefined;
    this.#shell ??= new ReadingShell(this.#machine, this.#clock, (isFailed) => {
      this.#shell = undefined;
      if (isFailed) this.#retryAt = this.#clock.monotonic() + retryMs;
    });
    return this.#shell.read(path);
  }
}

/** One session of the script. */
class ReadingShell {
  readonly #clock: Clock;
  readonly #onEnd: (isFailed: boolean) => void;
  readonly #input = new PassThrough();
  readonly #session = new AbortController();
  readonly #questions: ((text: string | undefined) => void)[] = [];
  #received = '';
  #text = '';
  #cancelIdle: () => void = () => undefined;

  constructor(machine: SessionMachine, clock: Clock, onEnd: (isFailed: boolean) => void) {
    this.#clock = clock;
    this.#onEnd = onEnd;
    const request = {
      argv: ['sh', '-c', readingScript],
      env: { LC_ALL: 'C' },
      input: this.#input,
      onStdout: (bytes: Buffer) => this.#take(bytes.toString('latin1')),
      onStderr: () => undefined,
      holdsProcess: false,
      signal: this.#session.signal,
    };
    const end = (): void => this.#end(true);
    void machine.session(request, { lane: 'stream', isRepeatable: false }).then(end, end);
  }

  async read(path: string): Promise<string | undefined> {
    this.#cancelIdle();
    this.#cancelIdle = this.#clock.after(idleMs, () => this.#end(false));
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    this.#questions.push(resolve);
    this.#input.write(`${path}\n`);
    const answered = new AbortController();
    // Unlike the session, this timer keeps the process alive until the answer.
    const late = this.#clock.sleep(answerLimitMs, answered.signal).then(() => {
      if (!answered.signal.aborted) this.#end(true);
      return undefined;
    });
    try {
      return await Promise.race([promise, late]);
    } finally {
      answered.abort(ended);
    }
  }

  #take(received: string): void {
    this.#received += received;
    for (let end = this.#received.indexOf('\n'); end >= 0; end = this.#received.indexOf('\n')) {
      const line = this.#received.slice(0, end);
      this.#received = this.#received.slice(end + 1);
      this.#text += line.slice(1);
      if (line.startsWith('.')) this.#text += '\n';
      else this.#answer(line.startsWith('=') && this.#text !== '' ? Buffer.from(this.#text, 'latin1').toString('utf8') : undefined);
    }
    if (this.#received.length + this.#text.length > maxAnswerBytes) this.#end(true);
  }

  #answer(text: string | undefined): void {
    this.#text = '';
    this.#questions.shift()?.(text);
  }

  #end(isFailed: boolean): void {
    if (this.#session.signal.aborted) return;
    this.#session.abort(ended);
    this.#cancelIdle();
    this.#onEnd(isFailed);
    while (this.#questions.length > 0) this.#answer(undefined);
  }
}
