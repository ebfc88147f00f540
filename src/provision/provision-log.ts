import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Clock, isoTime } from '../shared/clock.ts';
import { appendToLog } from '../shared/system/log-file.ts';
import type { PublishProgress } from './files/publish.ts';

/** Writes one line for users about the progress of a search for a machine. */
export type ProvisionLog = (line: string) => void;

/** Size at which the log is rotated, bytes. A launch that retries without end writes about one line per attempt. */
const longestLog = 1_048_576;

/** Returns a log that appends to a file. It writes synchronously, so a crash of the process loses no line. */
export function fileProvisionLog(path: string, clock: Clock): ProvisionLog {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  return (line) => appendToLog(path, `[svc ${isoTime(clock.now())}] ${line}\n`, longestLog);
}

const count = (value: number): string => value.toLocaleString('en-US');

/** Progress of a publication as text: `310 of 20,000 files, 4.2 of 81.0 MB`. */
export function progressLine({ files, totalFiles, bytes, totalBytes, sentBytes }: PublishProgress): string {
  const how = `${count(files)} of ${count(totalFiles)} files, ${megabytes(bytes)} of ${megabytes(totalBytes)} MB`;
  return files === totalFiles ? `${how}; ${megabytes(sentBytes)} MB were sent` : how;
}

/** MB of 1,000,000 bytes, with one decimal. */
export function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toLocaleString('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
}
