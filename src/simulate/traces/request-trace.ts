import { SvcError } from '../../shared/errors.ts';
import { Bins, maxTraceDays } from './bins.ts';
import { recogniseFormat, requestFormats, type RequestFormat } from './request-formats.ts';
import { wallTimeMs } from './trace-time.ts';

/** Requests over time. */
export interface RequestTrace {
  readonly format: RequestFormat;
  /** The requests that arrive in each second. A trace of minutes has fractions. */
  readonly perSecond: Float64Array;
  /** Wall time of the first second, ms; undefined when the trace has no dates. */
  readonly startedAt: number | undefined;
}

/** No format has longer lines. A file without line ends would otherwise be kept in memory as a whole. */
const maxLineLength = 1_048_576;

/** Characters of a wrong line that an error shows. */
const maxExcerpt = 120;

/** Reads a trace of requests piece by piece, so that a large file never is in memory as a whole. */
export class RequestTraceReader {
  readonly #file: string;
  readonly #bins = new Bins();
  #opened: ReturnType<typeof recogniseFormat>;
  #rest = '';
  #lineNumber = 0;

  /** `file`: its name, for messages. */
  constructor(file: string) {
    this.#file = file;
  }

  /** Takes the next piece of the text. Throws SVC_BAD_TRACE. */
  add(piece: string): void {
    const lines = (this.#rest + piece).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#readLine(line);
    if (this.#rest.length > maxLineLength) {
      this.#lineNumber += 1;
      throw this.#fault(this.#rest, `a line of at most ${maxLineLength} characters`);
    }
  }

  /** The whole trace. Throws SVC_BAD_TRACE. */
  finish(): RequestTrace {
    this.#readLine(this.#rest);
    const perSecond = this.#bins.perSecond();
    if (this.#opened === undefined || perSecond.every((requests) => requests === 0)) {
      throw new SvcError('SVC_BAD_TRACE', `The trace ${this.#file} has no requests.`, { hint: formatsHint });
    }
    return { format: this.#opened.format, perSecond, startedAt: wallTimeMs(this.#bins.startTime) };
  }

  #readLine(raw: string): void {
    this.#lineNumber += 1;
    const line = raw.trim();
    if (line === '') return;
    if (this.#opened === undefined) {
      this.#opened = recogniseFormat(line);
      if (this.#opened === undefined) throw this.#unknown(line);
      if (this.#opened.hasHeader) return;
    }
    const fault = this.#opened.read(line, this.#bins);
    if (fault === 'tooFar') throw this.#fault(line, `a time within ${maxTraceDays} days of the others`);
    if (fault !== undefined) throw this.#fault(line, fault.expected);
  }

  #fault(line: string, expected: string): SvcError {
    const format = this.#opened === undefined ? '' : ` The file was recognised as: ${requestFormats[this.#opened.format]}.`;
    return new SvcError('SVC_BAD_TRACE', `The trace ${this.#file} cannot be read.${format}`, {
      problems: [this.#problem(line, `expected ${expected}`)],
    });
  }

  #unknown(line: string): SvcError {
    return new SvcError('SVC_BAD_TRACE', `The format of the trace ${this.#file} is not known.`, {
      hint: formatsHint,
      problems: [this.#problem(line, 'expected the first line of a trace of requests')],
    });
  }

  #problem(line: string, message: string) {
    return { message, file: this.#file, line: this.#lineNumber, column: 1, excerpt: line.slice(0, maxExcerpt) };
  }
}

const formatsHint = `Known formats: ${Object.values(requestFormats).join('; ')}.`;
