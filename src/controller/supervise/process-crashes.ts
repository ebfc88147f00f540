import type { Clock } from '../../shared/clock.ts';
import { isObject, parseJson } from '../../shared/json.ts';
import { endOf } from '../kept-log.ts';

/** Time window of reported crashes, ms. */
export const crashWindowMs = 600_000;
/** More than a crash loop at its longest backoff causes within the window. */
const keptCrashes = 200;
/** How much of the end of a log is searched for the error, bytes. */
const searchedBytes = 65_536;
const longestError = 300;
/** Lowest pino level that counts as an error. */
const errorLevel = 50;

/** The crashes of one process within the window. */
export interface RecentCrashes {
  readonly count: number;
  /** Wall time, ms. */
  readonly lastAt: number;
  /** In one line. */
  readonly lastError: string;
}

/** The crashes of one process, as its supervisor saw them. */
export class ProcessCrashes {
  readonly #clock: Clock;
  #times: readonly number[] = [];
  #lastError = '';

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(error: string): void {
    this.#times = [...this.#within(), this.#clock.now()].slice(-keptCrashes);
    this.#lastError = error;
  }

  get recent(): RecentCrashes | undefined {
    const times = this.#within();
    const lastAt = times.at(-1);
    return lastAt === undefined ? undefined : { count: times.length, lastAt, lastError: this.#lastError };
  }

  #within(): readonly number[] {
    const since = this.#clock.now() - crashWindowMs;
    return this.#times.filter((time) => time >= since);
  }
}

/** The last error in a log from `offset` on: an uncaught exception, or a line of pino. Undefined without one. */
export function lastErrorInLog(path: string, offset: number): string | undefined {
  const lines = readEnd(path, offset).split('\n');
  for (const line of lines.toReversed()) {
    const error = line.startsWith('{') ? loggedError(line) : /^(?:Uncaught )?[A-Za-z]*(?:Error|Exception)\b.*: \S.*$/.exec(line)?.[0];
    if (error !== undefined) return error.slice(0, longestError);
  }
  return undefined;
}

function loggedError(line: string): string | undefined {
  const entry = parseJson(line);
  if (!isObject(entry) || typeof entry['level'] !== 'number' || entry['level'] < errorLevel) return undefined;
  const { err, msg } = entry;
  const parts = [msg, isObject(err) ? err['message'] : undefined].filter((part) => typeof part === 'string' && part !== '');
  return parts.length === 0 ? undefined : parts.join(': ').split('\n')[0];
}

function readEnd(path: string, offset: number): string {
  try {
    return endOf(path, searchedBytes, offset);
  } catch {
    // Without a log there is no error to show. The crash still counts.
    return '';
  }
}
