import { SvcError } from '../shared/errors.ts';
import { quote } from '../shared/quote.ts';
import { parseDotenv } from './dotenv.ts';
import { readTextFile } from './read-text-file.ts';
import { variableName } from './schema/task.ts';

/** What the command line says about variables: `K=V` or `K` each, and dotenv files. */
export interface EnvFlags {
  readonly envFlags: readonly string[];
  readonly envFile?: string | undefined;
  readonly secretFlags: readonly string[];
  readonly secretFile?: string | undefined;
}

/** Values for `TaskSource`. */
export interface CollectedEnvs {
  readonly envs: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
}

/** Bytes. */
const maxEnvFileBytes = 1_048_576;

/**
 * The variables that flags and files give; flags go before files, later ones before earlier ones. `readEnv` gives the value of a local
 * variable for a name without a value, undefined when unset. Throws SVC_USAGE without ever quoting a value, SVC_MISSING_ENV, SVC_FILE_NOT_FOUND, SVC_FILE_UNREADABLE.
 */
export function collectEnvs(flags: EnvFlags, readEnv: (name: string) => string | undefined): CollectedEnvs {
  return {
    envs: Object.fromEntries([...fromFile(flags.envFile, '--env-file', readEnv), ...fromFlags(flags.envFlags, '--env', readEnv)]),
    secrets: Object.fromEntries([
      ...fromFile(flags.secretFile, '--secret-file', readEnv),
      ...fromFlags(flags.secretFlags, '--secret', readEnv),
    ]),
  };
}

type ReadEnv = (name: string) => string | undefined;
type Pair = readonly [name: string, value: string];

function fromFlags(given: readonly string[], flag: string, readEnv: ReadEnv): readonly Pair[] {
  return given.map((text): Pair => {
    const equals = text.indexOf('=');
    const name = equals === -1 ? text : text.slice(0, equals);
    if (!isName(name)) {
      const hint = 'Names have letters, digits and underscores, and do not begin with a digit.';
      throw new SvcError('SVC_USAGE', `${flag} ${quote(name)}: not the name of a variable.`, { hint });
    }
    return [name, equals === -1 ? local(name, flag, readEnv) : text.slice(equals + 1)];
  });
}

function isName(name: string): boolean {
  return variableName.test(name) && name !== '__proto__';
}

function local(name: string, where: string, readEnv: ReadEnv): string {
  const value = readEnv(name);
  if (value !== undefined) return value;
  throw new SvcError('SVC_MISSING_ENV', `${where}: ${name} is not set in local environment.`, {
    hint: `Set it, or give the value: ${where.startsWith('--') ? `${where} ` : ''}${name}=VALUE`,
  });
}

function fromFile(path: string | undefined, flag: string, readEnv: ReadEnv): readonly Pair[] {
  if (path === undefined) return [];
  const text = readTextFile(path, 'The file', maxEnvFileBytes, (file) => {
    return new SvcError('SVC_FILE_TOO_BIG', `${flag} ${file} is larger than 1 MiB.`);
  });
  const { entries, problems } = parseDotenv(text);
  const all = [
    ...problems,
    ...entries.flatMap(({ name, value, line }) => {
      if (!isName(name)) return [{ line, message: `${quote(name)} is not the name of a variable` }];
      return value?.includes('\0') === true ? [{ line, message: 'a value cannot hold the NUL character' }] : [];
    }),
  ];
  if (all.length > 0) {
    // Without excerpts: the lines may hold secrets.
    const details = all.slice(0, 100).map(({ line, message }) => ({ message, file: path, line, column: 1 }));
    const hint = 'Write one NAME=VALUE on each line, values with spaces in quotes.';
    throw new SvcError('SVC_USAGE', `${flag} ${path} has ${all.length === 1 ? 'a problem' : `${all.length} problems`}.`, {
      hint,
      problems: details,
    });
  }
  return entries.map(({ name, value, line }): Pair => [name, value ?? local(name, `${path}:${line}`, readEnv)]);
}
