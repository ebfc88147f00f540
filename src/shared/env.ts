import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** The value of an environment variable; undefined when unset or empty. The only reader of the environment. */
export function envVar(name: string): string | undefined {
  const value = process.env[name];
  return value === undefined || value === '' ? undefined : value;
}

/** The whole environment, to pass on to a child process. */
export function wholeEnv(): Readonly<Record<string, string | undefined>> {
  return process.env;
}

/** The folder for all state of one user or team: `SVC_HOME`, by default `~/.svc`. Always absolute. */
export function svcHome(): string {
  const given = envVar('SVC_HOME');
  return given === undefined ? defaultHome() : resolve(given);
}

/** The default SVC_HOME of the user. */
export function defaultHome(): string {
  return join(envVar('HOME') ?? homedir(), '.svc');
}

/** The user's home folder, for `~` in paths. */
export function homeDir(): string {
  return envVar('HOME') ?? homedir();
}
