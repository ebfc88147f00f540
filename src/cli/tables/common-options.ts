import type { ArgumentSpec, OptionSpec } from '../command.ts';

/** Options that several commands share, so that they read alike everywhere. */
export const json = { kind: 'flag', summary: 'print the result, or the error, as JSON' } as const satisfies OptionSpec;
/** Confirms a costly or destructive command. */
export const yes = { kind: 'flag', short: 'y', summary: 'do not ask for confirmation' } as const satisfies OptionSpec;
/** Removes records even when a machine could not be removed. */
export const purge = {
  kind: 'flag',
  summary: 'forget it even when its machines cannot be removed (they may stay behind)',
} as const satisfies OptionSpec;
/** For commands that terminate something and by default wait until it is gone. */
export const waitGone = {
  kind: 'switch',
  summary: 'wait until everything is gone (default)',
  offSummary: 'return as soon as it has begun',
} as const satisfies OptionSpec;
/** The number of log lines; for commands that show logs. */
export const tail = {
  kind: 'integer',
  label: 'N',
  min: 0,
  max: Number.MAX_SAFE_INTEGER,
  summary: 'begin with the last N lines',
} as const satisfies OptionSpec;
/** For logs. Following is the default, because the log of a running program grows. */
export const followLog = {
  kind: 'switch',
  summary: 'go on as the log grows (default)',
  offSummary: 'end with what is there',
} as const satisfies OptionSpec;

/** Options that set variables of a task file. */
export const envOptions = {
  env: { kind: 'values', label: 'NAME[=VALUE]', summary: 'set a variable of `envs`; without a value it is taken from the environment' },
  envFile: { kind: 'value', label: 'FILE', completes: 'file', summary: 'set variables from a file of NAME=VALUE lines' },
  secret: {
    kind: 'values',
    label: 'NAME[=VALUE]',
    summary: 'set a variable of `secrets`, never shown; prefer NAME alone, as other users see arguments',
  },
  secretFile: { kind: 'value', label: 'FILE', completes: 'file', summary: 'set secrets from a file of NAME=VALUE lines' },
} as const satisfies Record<string, OptionSpec>;

/** Options that override a task file. */
export const taskOptions = {
  ...envOptions,
  workdir: { kind: 'value', label: 'FOLDER', completes: 'folder', summary: 'use this folder instead of the `workdir` of the file' },
} as const satisfies Record<string, OptionSpec>;

/** A task or service file. */
export const taskFile = { kind: 'one', label: 'FILE', completes: 'file', summary: 'task file (YAML)' } as const satisfies ArgumentSpec;
