import type { ServiceSpec, Task } from '../domain/task.ts';
import { SvcError } from '../shared/errors.ts';
import { quote } from '../shared/quote.ts';
import { homeDir } from '../shared/home-dir.ts';
import { findingsOf, type FindingContext } from './findings.ts';
import { parsePartly } from './partial-parse.ts';
import { pathBase, type PathBase } from './paths.ts';
import { readFileMounts, readWorkdir } from './read/mounts.ts';
import { readResources } from './read/resources.ts';
import { readService } from './read/service.ts';
import { checkService, checkServiceResources } from './read/service-rules.ts';
import { readVariables, reportMissing, type GivenVariables, type TaskVariables } from './read/variables.ts';
import { Report } from './report.ts';
import { machineSection } from './schema/resources.ts';
import { serviceSection } from './schema/service.ts';
import { taskSection, variableName, type TaskFields } from './schema/task.ts';
import { SourceText } from './source-text.ts';
import { retyped, substitute, substituteJson } from './substitute.ts';
import { dropNulls } from './yaml/drop-nulls.ts';
import { composeYaml } from './yaml/compose.ts';
import { nodeAt, toValue, type MapEntry, type MapNode } from './yaml/node.ts';

/** A task file's text with what the command line added to it. */
export interface TaskSource {
  readonly source: string;
  /** Absolute path of the file, or `-` for standard input: for messages, and what relative paths start from. */
  readonly file: string;
  readonly envs: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
  /** Replaces the `workdir` of the file. */
  readonly workdir?: string | undefined;
  /** What `~` stands for; by default the home folder of the user. */
  readonly home?: string | undefined;
}

/** Bytes (1 MiB); real files have a few thousand. */
export const maxTaskBytes = 1_048_576;

/**
 * Reads a task or service file. Throws `SvcError` and nothing else: SVC_INVALID_TASK with all problems at once, SVC_MISSING_ENV when
 * the only ones are variables without a value, SVC_FILE_TOO_BIG. Does not look at the file system: see `checkTaskFiles`.
 */
export function parseTask(input: TaskSource): Task {
  if (input.source.length > maxTaskBytes || Buffer.byteLength(input.source) > maxTaskBytes) throw tooBig(input.file);
  const source = new SourceText(input.source.replace(/^\uFEFF/, ''), input.file);
  const composed = composeYaml(source);
  if (composed.root?.kind !== 'map') {
    const report = new Report(source, composed.root, () => Object.values(input.secrets));
    for (const fault of composed.faults) report.fault(fault);
    if (composed.root !== undefined) report.at([], 'expected a map of fields such as resources, run and service', 'Is it the right file?');
    throw report.toError('SVC_INVALID_TASK', 'The task file');
  }
  const root = dropNulls(composed.root, nullableSections);
  const variables = readVariables(root, input);
  const reader = new TaskReader(source, root, variables);
  reader.checkGiven(input);
  return reader.read(pathBase(input.file, input.home ?? homeDir()), input.workdir);
}

/** The error for a file beyond `maxTaskBytes`. */
export function tooBig(file: string): SvcError {
  return new SvcError('SVC_FILE_TOO_BIG', `${file} is larger than 1 MiB, which no task file needs to be.`);
}

/** The service of a task; throws SVC_INVALID_TASK when there is none. */
export function serviceOf(task: Task, file: string): ServiceSpec {
  if (task.service !== undefined) return task.service;
  const hint =
    'Add a service section, for instance: service: {readiness_probe: /health, replicas: 2}; or run the file once with: svc launch';
  throw new SvcError('SVC_INVALID_TASK', `${file} has no service section.`, { hint });
}

/** Sections in which an empty value is as good as none. Deeper ones are mistakes. */
const nullableSections = [[], ['service'], ['resources'], ['resources', 'any_of', '*'], ['resources', 'ordered', '*']] as const;

/** Where fields belong that are often written one level too high. */
const homes: ReadonlyMap<string, string> = new Map([
  ...Object.keys(serviceSection.shape).map((key) => [key, 'service'] as const),
  ...Object.keys(machineSection.shape).map((key) => [key, 'resources'] as const),
]);

/** Top-level fields that are valid and acted upon elsewhere, or not at all. */
const otherFields = [
  'pool',
  'managed_secrets',
  'config',
  'volumes',
  'volume_mounts',
  'inputs',
  'outputs',
  'event_callback',
  'file_mounts_mapping',
  'api_server_access',
  '_metadata',
] as const;

class TaskReader {
  readonly #report: Report;
  readonly #root: MapNode;
  readonly #variables: TaskVariables;
  readonly #broken = new Set<string>();

  constructor(source: SourceText, root: MapNode, variables: TaskVariables) {
    this.#variables = variables;
    this.#root = substituteSections(root, variables);
    this.#report = new Report(source, this.#root, () => variables.secrets.values());
  }

  /** The command line checks its flags itself; the control API takes what it is sent. */
  checkGiven({ envs, secrets }: GivenVariables): void {
    for (const [name, value] of [...Object.entries(envs), ...Object.entries(secrets)]) {
      if (!variableName.test(name) || name === '__proto__')
        this.#report.at([], `${quote(name)}, given beside the file, is not the name of a variable`);
      else if (value.includes('\0')) this.#report.at([], `the value of ${name}, given beside the file, holds the NUL character`);
    }
  }

  read(base: PathBase, workdir: string | undefined): Task {
    const report = this.#report;
    const fields = this.#validate();
    const resources = readResources(fields.resources ?? {}, ['resources'], report);
    const fileMounts = readFileMounts(fields.file_mounts, base, report);
    const isPool = fields.pool !== undefined || fields.service?.pool !== undefined;
    if (fields.service !== undefined && fields.pool !== undefined) {
      report.atKey(['pool'], 'service and pool cannot both be given', 'Keep one of the two.');
    }
    if (fields.service !== undefined && !isPool) {
      checkService(fields.service, this.#root, report);
      if (!this.#broken.has('resources')) checkServiceResources(fields.service, resources, this.#root, report);
    }
    this.#refuse();
    return {
      name: fields.name,
      workdir: readWorkdir(fields.workdir, workdir, base),
      numNodes: fields.num_nodes ?? 1,
      resources,
      fileMounts,
      envs: Object.fromEntries(this.#variables.envs),
      secrets: Object.fromEntries(this.#variables.secrets),
      setup: fields.setup,
      run: fields.run,
      service: fields.service === undefined || isPool ? undefined : readService(fields.service, resources, base),
      otherFields: this.#otherFields(fields, isPool),
    };
  }

  /** All that can be told of single fields; gives back what is sound. */
  #validate(): TaskFields {
    const root = this.#root;
    const { output, issues } = parsePartly(taskSection, toValue(root), (path) => retyped(root, path));
    const context: FindingContext = { root, homes };
    for (const finding of findingsOf(issues, context)) {
      this.#broken.add(String(finding.path[0]));
      const node = nodeAt(root, finding.path);
      // What depends on a variable without a value is not judged: the missing value is the problem.
      if (!finding.key && node?.kind === 'scalar' && node.origin === 'withheld') continue;
      if (finding.key) this.#report.atKey(finding.path, finding.message, finding.hint);
      else this.#report.at(finding.path, finding.message, finding.hint);
    }
    return output ?? {};
  }

  #refuse(): void {
    const { missingEnvs, missingSecrets, missing } = this.#variables;
    const isOnlyMissing = this.#report.isEmpty;
    reportMissing(this.#variables, this.#report);
    if (missing.size > 0 && isOnlyMissing) {
      const message = `These variables have no value: ${[...missing].join(', ')}.`;
      const flags = [...missingEnvs.map((name) => `--env ${name}=VALUE`), ...missingSecrets.map((name) => `--secret ${name}=VALUE`)];
      throw this.#report.toError('SVC_MISSING_ENV', 'The task file', { message, hint: `Add: ${flags.join(' ')}` });
    }
    if (!this.#report.isEmpty) throw this.#report.toError('SVC_INVALID_TASK', 'The task file');
  }

  #otherFields(fields: TaskFields, isPool: boolean): readonly string[] {
    const found: string[] = otherFields.filter((name) => fields[name] !== undefined && fields[name] !== false);
    if (isPool && !found.includes('pool')) found.push('pool');
    if (this.#variables.hasManagedSecrets && !found.includes('managed_secrets')) found.push('managed_secrets');
    return found;
  }
}

/** Variables are put in below these fields only; `run` and `setup` see them as real environment variables. */
const substituted = new Set(['service', 'file_mounts', 'workdir', 'volumes']);

function substituteSections(root: MapNode, variables: TaskVariables): MapNode {
  if (variables.values.size === 0 && variables.missing.size === 0) return root;
  const entries = [...root.entries].map(([key, entry]): readonly [string, MapEntry] => {
    if (!substituted.has(key)) return [key, entry];
    return [key, { ...entry, value: key === 'service' ? substituteService(entry.value, variables) : substitute(entry.value, variables) }];
  });
  return { ...root, entries: new Map(entries) };
}

/** `readiness_probe.post_data` may be JSON in text, which takes values with care. */
function substituteService(service: MapEntry['value'], variables: TaskVariables): MapEntry['value'] {
  const result = substitute(service, variables);
  const body = nodeAt(service, ['readiness_probe', 'post_data']);
  const probe = nodeAt(result, ['readiness_probe']);
  if (result.kind !== 'map' || probe?.kind !== 'map' || body === undefined) return result;
  const probeEntry = result.entries.get('readiness_probe');
  const bodyEntry = probe.entries.get('post_data');
  if (probeEntry === undefined || bodyEntry === undefined) return result;
  const newProbe = { ...probe, entries: new Map(probe.entries).set('post_data', { ...bodyEntry, value: substituteJson(body, variables) }) };
  return { ...result, entries: new Map(result.entries).set('readiness_probe', { ...probeEntry, value: newProbe }) };
}
