import { styleText } from 'node:util';
import type { Clock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import { asTyped, typedName, wrapText } from './command-text.ts';
import { patientProgress, plainProgress, terminalProgress, type Progress } from './progress.ts';
import { columnsOf, type OutputStream, type Streams } from './streams.ts';

/** The colours in use, named by meaning. */
export type Tone = 'good' | 'busy' | 'bad' | 'quiet' | 'strong';

const formats = { good: 'green', busy: 'yellow', bad: 'red', quiet: 'dim', strong: 'bold' } as const;

/** The user pressed Ctrl-C where it is read as a key, as in a prompt. Ends a command as the signal does. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** Output of commands: results go to standard output, all messages to standard error. */
export interface Ui {
  /** Whether results go to a terminal. */
  readonly outIsTerminal: boolean;
  /** Whether the user can be asked: input and messages are on a terminal. */
  readonly canAsk: boolean;
  /** Columns of a line of output; infinite unless on a terminal. */
  readonly outWidth: number;
  /** The same for messages. */
  readonly sayWidth: number;
  readonly outRows: number;
  /** Prints a line of the result. */
  print(line: string): void;
  /** Writes a part of the result unchanged. */
  write(text: string | Uint8Array): void;
  json(value: unknown): void;
  /** Prints a message outside the result. Its commands become pasteable, and a terminal gets it wrapped. */
  say(line: string): void;
  /** The same for text from other programs: unchanged. */
  quote(line: string): void;
  /** Rewrites the commands in our messages as this user types them. */
  asTyped(text: string): string;
  progress(): Progress;
  /** The same for waits that are mostly short: a short wait shows nothing. */
  waiting(): Progress;
  /** False for no. Enter is yes if `isLikely`. Throws SVC_CONFIRM_NEEDED if it cannot ask, or `Interrupted`. */
  confirm(question: string, yes: boolean, isLikely?: boolean): Promise<boolean>;
  /** Colours a text of the result, if the output supports colours. */
  readonly paint: (tone: Tone, text: string) => string;
  /** The same for standard error. */
  readonly paintMessage: (tone: Tone, text: string) => string;
}

interface UiOptions {
  readonly clock: Clock;
  readonly env: (name: string) => string | undefined;
  /** Aborts a question. */
  readonly signal: AbortSignal;
}

/** A `Ui` over three streams. */
export function createUi(streams: Streams, options: UiOptions): Ui {
  const { stdin, stdout, stderr } = streams;
  const plain = options.env('NO_COLOR') !== undefined || options.env('TERM') === 'dumb';
  const paintFor =
    (stream: OutputStream) =>
    (tone: Tone, text: string): string =>
      stream.isTTY === true && !plain ? styleText(formats[tone], text, { validateStream: false }) : text;
  const name = typedName(options.env('SVC_INVOKED_AS'));
  const moves = stderr.isTTY === true && options.env('TERM') !== 'dumb';
  const canAsk = stdin.isTTY === true && stderr.isTTY === true;
  return {
    outIsTerminal: stdout.isTTY === true,
    canAsk,
    get outWidth() {
      return columnsOf(stdout);
    },
    get sayWidth() {
      return columnsOf(stderr);
    },
    get outRows() {
      return stdout.rows ?? 24;
    },
    print: (line) => void stdout.write(`${line}\n`),
    write: (text) => void stdout.write(text),
    json: (value) => void stdout.write(`${JSON.stringify(value, undefined, 2)}\n`),
    say: (line) => void stderr.write(`${wrapText(asTyped(line, name), columnsOf(stderr))}\n`),
    quote: (line) => void stderr.write(`${line}\n`),
    asTyped: (text) => asTyped(text, name),
    progress: () => (moves ? terminalProgress(stderr, options.clock) : plainProgress(stderr, options.clock)),
    waiting: () => (moves ? patientProgress(terminalProgress(stderr, options.clock), options.clock) : plainProgress(stderr, options.clock)),
    async confirm(question, yes, isLikely = false) {
      if (yes) return true;
      if (!canAsk) throw new SvcError('SVC_CONFIRM_NEEDED', `${question} There is no terminal to ask on.`);
      const { confirm, isCancel } = await import('@clack/prompts');
      const answer = await confirm({ message: question, initialValue: isLikely, input: stdin, output: stderr, signal: options.signal });
      if (isCancel(answer)) throw new Interrupted();
      return answer;
    },
    paint: paintFor(stdout),
    paintMessage: paintFor(stderr),
  };
}
