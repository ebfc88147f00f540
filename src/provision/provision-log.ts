import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Clock, isoTime } from '../shared/clock.ts';
import { appendToLog } from '../shared/system/log-file.ts';
import type { PublishProgress } from './files/publish.ts';

/** Writes a line for users about the search for a machine. */
export type ProvisionLog = (line: string) => void;

/** The log is rotated at this size, bytes. A launch that retries without end writes about one line per attempt. */
const longestLog = 1_048_576;

/** Appends to a file, synchronously: a crash of the process loses no line. */
export function fileProvisionLog(path: string, clock: Clock): ProvisionLog {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  return (line) => appendToLog(path, `[svc ${isoTime(clock.now())}] ${line}\n`, longestLog);
}

const count = (value: number): string => value.toLocaleString('en-US');

/** Progress as text: `310 of 20,000 files, 4.2 of 81.0 MB`. */
export function progressLine({ files, totalFiles, bytes, totalBytes, sentBytes }: PublishProgress): string {
  const how = `${count(files)} of ${count(totalFiles)} files, ${megabytes(bytes)} of ${megabytes(totalBytes)} MB`;
  return files === totalFiles ? `${how}; ${megabytes(sentBytes)} MB were sent` : how;
}

/** MB of 1,000,000 bytes, with one decimal. */
export function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toLocaleString('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
}
