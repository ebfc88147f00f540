import { join } from 'node:path';
import { runProgram } from './processes.ts';

/** Concurrent connections of wrk, each with one request at a time. */
export const wrkConnections = 64;

/** The result of one run. */
export interface WrkResult {
  /** Complete replies. */
  readonly requests: number;
  readonly micros: number;
  readonly p50Micros: number;
  readonly p99Micros: number;
  /** Replies with a status of 400 or more, and requests without a reply. */
  readonly failed: number;
}

/**
 * Sends requests for `seconds`: POST when there is a file with a body. Rejects when a request failed, because the run
 * is then invalid.
 */
export async function runWrk(url: string, seconds: number, bodyFile: string | undefined): Promise<WrkResult> {
  const script = join(import.meta.dirname, 'request.lua');
  const options = ['-t1', `-c${wrkConnections}`, `-d${seconds}s`, '--timeout', '10s', '-s', script, url];
  const output = await runProgram('wrk', bodyFile === undefined ? options : [...options, '--', bodyFile]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the script beside this file writes it
  const result = JSON.parse(output.trimEnd().split('\n').at(-1) ?? '') as WrkResult;
  if (result.failed > 0) throw new Error(`${result.failed} of ${result.requests} requests to ${url} failed`);
  return result;
}
