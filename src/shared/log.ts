import { pino, type Logger } from 'pino';
import { outputLog } from './system/log-file.ts';

export type { Logger } from 'pino';

/** Logs JSON lines to standard output, the process's log file. Fields whose names suggest secrets are redacted. */
export function createLogger(name: string, level = 'info'): Logger {
  const options = {
    name,
    level,
    base: { pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: ['env', 'envs', 'secrets', 'headers', '*.env', '*.envs', '*.secrets', '*.headers'], censor: '<redacted>' },
  };
  // On a full disk pino's own writer keeps lines in memory, and the process never ends.
  const log = outputLog();
  return log === undefined ? pino(options) : pino(options, log);
}
