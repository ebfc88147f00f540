import { readLogTime } from '../../shared/log-time.ts';
import type { Bins } from './bins.ts';
import { parseNumber, parseTime } from './trace-time.ts';

/** The formats of traces of requests, with the words of messages. */
export const requestFormats = {
  counts: 'a header `requests_per_second`, then the requests of one second on each line',
  minutes: 'a header `Time (min),Requests`, then a minute and its requests on each line',
  pairs: 'a header `seconds,requests`, then a second and its requests on each line',
  arrivals: 'on each line the time of one arrival, in seconds or as a date, in the first column',
  timestamps: 'on each line a JSON object with the arrival in `timestamp`, in milliseconds',
  access_log: 'the access log of a service: on each line a JSON object with the arrival in `at`',
} as const;

/** The name of a format. */
export type RequestFormat = keyof typeof requestFormats;

/** Why a line is not of its format: what it should be. `tooFar`: it would make the trace too long. */
type LineFault = { readonly expected: string } | 'tooFar';

/** Reads one line into the bins. */
type LineReader = (line: string, bins: Bins) => LineFault | undefined;

interface OpenedFormat {
  readonly format: RequestFormat;
  readonly read: LineReader;
  /** Whether the first line is a title and no data. */
  readonly hasHeader: boolean;
}

/** Recognises the format of a trace by its first line. Undefined when it is none of `requestFormats`. */
export function recogniseFormat(firstLine: string): OpenedFormat | undefined {
  if (firstLine.startsWith('{')) return recogniseJson(firstLine);
  const cells = cellsOf(firstLine);
  const [first = ''] = cells;
  if (parseTime(first) !== undefined) {
    if (cells.length === 2 && cells.every((cell) => parseNumber(cell) !== undefined)) return opened('pairs', false);
    return opened('arrivals', false);
  }
  const titles = cells.map((cell) => cell.toLowerCase());
  const [title = '', second] = titles;
  if (titles.length === 1 && title === 'requests_per_second') return opened('counts', true);
  if (title.startsWith('time (min') && second === 'requests') return opened('minutes', true);
  if (titles.length === 2 && title === 'seconds' && second === 'requests') return opened('pairs', true);
  return ['seconds', 'timestamp', 'time', 'arrival'].includes(title) ? opened('arrivals', true) : undefined;
}

function recogniseJson(line: string): OpenedFormat | undefined {
  const fields = parseObject(line);
  if (typeof fields?.get('timestamp') === 'number') return opened('timestamps', false);
  return isAccessLine(fields) || isProcessLine(fields) ? opened('access_log', false) : undefined;
}

function opened(format: RequestFormat, hasHeader: boolean): OpenedFormat {
  return { format, read: readers[format](), hasHeader };
}

/** Each call makes a reader with its own state. */
const readers: Readonly<Record<RequestFormat, () => LineReader>> = {
  counts() {
    let second = 0;
    return (line, bins) => {
      const requests = parseNumber(line);
      if (requests === undefined) return { expected: 'a number of requests' };
      second += 1;
      return added(bins, second - 1, requests);
    };
  },
  minutes: () => (line, bins) => {
    const [minute, requests] = numbersOf(line);
    if (minute === undefined || requests === undefined) return { expected: 'a minute and a number of requests' };
    // The trace does not say when within the minute they came.
    for (let second = 0; second < 60; second += 1) if (!bins.add(minute * 60 + second, requests / 60)) return 'tooFar';
    return undefined;
  },
  pairs: () => (line, bins) => {
    const [second, requests] = numbersOf(line);
    if (second === undefined || requests === undefined) return { expected: 'a second and a number of requests' };
    return added(bins, second, requests);
  },
  arrivals: () => (line, bins) => {
    const time = parseTime(cellsOf(line)[0] ?? '');
    return time === undefined ? { expected: 'a time in seconds, or a date such as 2026-01-31 08:00:00' } : arrived(bins, time);
  },
  timestamps: () => (line, bins) => {
    const time = parseObject(line)?.get('timestamp');
    return typeof time === 'number' ? arrived(bins, time / 1_000) : { expected: 'a JSON object with a number in `timestamp`' };
  },
  access_log: () => (line, bins) => {
    const fields = parseObject(line);
    const time = readLogTime(fields?.get('at'));
    // The same log file has connections without a request, and messages of the balancer's process.
    if (fields?.get('outcome') === 'no_request' || isProcessLine(fields)) return undefined;
    return time === undefined ? { expected: 'a JSON object with a time in `at`' } : arrived(bins, time / 1_000);
  },
};

const arrived = (bins: Bins, time: number): LineFault | undefined => (bins.addArrival(time) ? undefined : 'tooFar');

function added(bins: Bins, seconds: number, requests: number): LineFault | undefined {
  return bins.add(seconds, requests) ? undefined : 'tooFar';
}

const cellsOf = (line: string): readonly string[] => line.split(',').map((cell) => cell.trim().replaceAll(/^"|"$/g, ''));

/** Exactly two numbers, or none. */
function numbersOf(line: string): readonly (number | undefined)[] {
  const cells = cellsOf(line);
  return cells.length === 2 ? cells.map(parseNumber) : [];
}

function parseObject(line: string): ReadonlyMap<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? new Map<string, unknown>(Object.entries(value)) : undefined;
  } catch {
    // The caller reports what the line should be.
    return undefined;
  }
}

const isAccessLine = (fields: ReadonlyMap<string, unknown> | undefined): boolean =>
  readLogTime(fields?.get('at')) !== undefined && fields?.has('outcome') === true;

const isProcessLine = (fields: ReadonlyMap<string, unknown> | undefined): boolean =>
  typeof fields?.get('level') === 'number' && fields.has('msg');
