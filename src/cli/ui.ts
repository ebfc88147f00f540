import { styleText } from 'node:util';
import type { Clock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import { asTyped, typedName, wrapText } from './command-text.ts';
import { plainProgress, terminalProgress, type Progress } from './progress.ts';
import { columnsOf, type OutputStream, type Streams } from './streams.ts';

/** The colours in use; each is a meaning rather than a taste. */
export type Tone = 'good' | 'busy' | 'bad' | 'quiet' | 'strong';

const formats = { good: 'green', busy: 'yellow', bad: 'red', quiet: 'dim', strong: 'bold' } as const;

/** Somebody pressed Ctrl-C where it is read as a key, as in a question. Ends a command as the signal does. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** How commands talk to people and programs: results go to standard output, everything said meanwhile to standard error. */
export interface Ui {
  /** Whether results go to a terminal. */
  readonly outIsTerminal: boolean;
  /** Whether somebody can be asked: input and messages are on a terminal. */
  readonly canAsk: boolean;
  /** Columns that a line of output may take: without bound unless on a terminal. */
  readonly outWidth: number;
  /** The same for what is said. */
  readonly sayWidth: number;
  /** Lines of the terminal that output goes to. */
  readonly outRows: number;
  /** A line of the result. */
  print(line: string): void;
  /** A part of the result as it is. */
  write(text: string | Uint8Array): void;
  /** The result as one JSON document. */
  json(value: unknown): void;
  /** A line of ours that is not part of the result. Commands in it become what can be pasted, and a terminal gets it wrapped. */
  say(line: string): void;
  /** The same for what others wrote: as it is. */
  quote(line: string): void;
  /** A text of ours in which commands are as this person types them. */
  asTyped(text: string): string;
  progress(): Progress;
  /** Asks a question, which is answered with yes by mere Enter when that is likely; false for no. Throws SVC_CONFIRM_NEEDED when nobody can be asked, unless `yes` was given, and `Interrupted` at Ctrl-C. */
  confirm(question: string, yes: boolean, isLikely?: boolean): Promise<boolean>;
  /** Colours a text of the result when output shows colours. */
  readonly paint: (tone: Tone, text: string) => string;
  /** Colours a text for standard error. */
  readonly paintMessage: (tone: Tone, text: string) => string;
}

/** What the environment says about output. */
export interface UiOptions {
  readonly clock: Clock;
  readonly env: (name: string) => string | undefined;
  /** Ends a question. */
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
    progress: () =>
      stderr.isTTY === true && options.env('TERM') !== 'dumb' ? terminalProgress(stderr, options.clock) : plainProgress(stderr),
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
