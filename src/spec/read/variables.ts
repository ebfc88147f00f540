import type { Report } from '../report.ts';
import { toValue, type MapNode, type YamlNode } from '../yaml/node.ts';
import type { Variables } from '../substitute.ts';

/** Values from the command line; they override those in the file. */
export interface GivenVariables {
  readonly envs: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
}

/** `envs` and `secrets` of a file, with additions from the command line. */
export interface TaskVariables extends Variables {
  readonly envs: ReadonlyMap<string, string>;
  readonly secrets: ReadonlyMap<string, string>;
  readonly missingEnvs: readonly string[];
  readonly missingSecrets: readonly string[];
  /** Whether `secrets` is a list of references to externally stored secrets. */
  readonly hasManagedSecrets: boolean;
}

/** Reads both sections from the document itself, so that `1.50` and `yes` are passed on exactly as written. */
export function readVariables(root: MapNode, given: GivenVariables): TaskVariables {
  const secretsNode = root.entries.get('secrets')?.value;
  const envs = new Map<string, string>();
  const secrets = new Map<string, string>();
  const missingEnvs = new Set<string>();
  const missingSecrets = new Set<string>();
  collect(root.entries.get('envs')?.value, envs, missingEnvs);
  collect(secretsNode, secrets, missingSecrets);
  // A name that the file declares a secret stays one for any flag: --env must not make it public.
  const isSecret = (name: string): boolean => secrets.has(name) || missingSecrets.has(name);
  for (const [name, value] of Object.entries(given.envs)) (isSecret(name) ? secrets : envs).set(name, value);
  for (const [name, value] of Object.entries(given.secrets)) secrets.set(name, value);
  for (const name of secrets.keys()) envs.delete(name);
  const isGiven = (name: string): boolean => envs.has(name) || secrets.has(name);
  const stillMissing = {
    envs: [...missingEnvs].filter((name) => !isGiven(name)),
    secrets: [...missingSecrets].filter((name) => !isGiven(name)),
  };
  return {
    envs,
    secrets,
    missingEnvs: stillMissing.envs,
    missingSecrets: stillMissing.secrets,
    hasManagedSecrets: secretsNode?.kind === 'list',
    values: new Map([...envs, ...secrets]),
    missing: new Set([...stillMissing.envs, ...stillMissing.secrets]),
  };
}

function collect(node: YamlNode | undefined, values: Map<string, string>, missing: Set<string>): void {
  if (node?.kind !== 'map') return;
  for (const [name, { value }] of node.entries) {
    if (value.kind !== 'scalar') values.set(name, JSON.stringify(toValue(value)));
    else if (value.value === null) missing.add(name);
    else values.set(name, value.text);
  }
}

/** One problem for each declared variable without a value. */
export function reportMissing(variables: TaskVariables, report: Report): void {
  const addProblem = (section: 'envs' | 'secrets', name: string, flags: string): void => {
    const message = `the ${section === 'envs' ? 'variable' : 'secret'} has no value`;
    report.at([section, name], message, `Give it with ${flags}; to make it empty, write ${name}: "".`);
  };
  for (const name of variables.missingEnvs) addProblem('envs', name, `--env ${name}=VALUE, --env ${name} or --env-file`);
  for (const name of variables.missingSecrets) addProblem('secrets', name, `--secret ${name}=VALUE, --secret ${name} or --secret-file`);
}
