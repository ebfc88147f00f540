import { pino, type Logger } from 'pino';

export type { Logger } from 'pino';

/** JSON lines to standard output, which the parent has pointed at the process's log file. Field names that could hold secrets are cut. */
export function createLogger(name: string, level = 'info'): Logger {
  return pino({
    name,
    level,
    base: { pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: ['env', 'envs', 'secrets', 'headers', '*.env', '*.envs', '*.secrets', '*.headers'], censor: '<redacted>' },
  });
}
