import { appendFileSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { isoTime, type Clock } from '../shared/clock.ts';

/** Writes one line for people about what is being done to get a machine. */
export type ProvisionLog = (line: string) => void;

/** Appends to a file; synchronous, so that the last line before a crash is there. */
export function fileProvisionLog(path: string, clock: Clock): ProvisionLog {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  return (line) => appendFileSync(path, `[svc ${isoTime(clock.now())}] ${line}\n`, { mode: 0o600 });
}
