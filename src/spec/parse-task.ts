import type { ServiceSpec, Task } from '../domain/task.ts';
import { SvcError } from '../shared/errors.ts';
import { homeDir } from '../shared/env.ts';
import { quote } from '../shared/text.ts';
import { findingsOf, type FindingContext } from './findings.ts';
import { parsePartly } from './partial-parse.ts';
import { pathBase, type PathBase } from './paths.ts';
import { readProviderConfig, readVolumes } from './read/kubernetes.ts';
import { readFileMounts, readWorkdir } from './read/mounts.ts';
import { readResources } from './read/resources.ts';
import { checkService, checkServiceResources } from './read/service-rules.ts';
import { readService } from './read/service.ts';
import { reportMissing, type GivenVariables, type TaskVariables } from './read/variables.ts';
import type { Report } from './report.ts';
import { machineSection } from './schema/resources.ts';
import { serviceSection } from './schema/service.ts';
import { taskSection, variableName, type TaskFields } from './schema/task.ts';
import { retyped } from './substitute.ts';
import { openTask, type TaskDocument, type TaskSource } from './task-document.ts';
import { nodeAt, toValue, type MapNode } from './yaml/node.ts';

/**
 * Parses a task or service file. Throws only SVC_INVALID_TASK with all problems at once, SVC_MISSING_ENV when all are
 * variables without a value, and SVC_FILE_TOO_BIG. Reads no files: see `checkTaskFiles`.
 */
export function parseTask(input: TaskSource): Task {
  const reader = new TaskReader(openTask(input));
  reader.checkGiven(input);
  return reader.read(pathBase(input.file, input.home ?? homeDir()), input.workdir);
}

/** The service of a task; throws SVC_INVALID_TASK when there is none. */
export function serviceOf(task: Task, file: string): ServiceSpec {
  if (task.service !== undefined) return task.service;
  const hint =
    'Add a service section, for instance: service: {readiness_probe: /health, replicas: 2}; or run the file once with: svc launch';
  throw new SvcError('SVC_INVALID_TASK', `${file} has no service section.`, { hint });
}

/** The right section of fields that users often write one level too high. */
const homes: ReadonlyMap<string, string> = new Map([
  ...Object.keys(serviceSection.shape).map((key) => [key, 'service'] as const),
  ...Object.keys(machineSection.shape).map((key) => [key, 'resources'] as const),
]);

/** Top-level fields that are valid and handled in another module, or ignored. */
const otherFields = [
  'pool',
  'managed_secrets',
  'volume_mounts',
  'inputs',
  'outputs',
  'event_callback',
  'file_mounts_mapping',
  'api_server_access',
  '_metadata',
] as const;

/** Bytes of `NAME=VALUE` with its end, Linux's MAX_ARG_STRLEN: https://man7.org/linux/man-pages/man2/execve.2.html */
const maxVariableBytes = 131_072;

const largeValueHint = 'Put it into a file, and bring that with file_mounts or workdir.';

class TaskReader {
  readonly #document: TaskDocument;
  readonly #report: Report;
  readonly #root: MapNode;
  readonly #variables: TaskVariables;
  readonly #broken = new Set<string>();

  constructor(document: TaskDocument) {
    this.#document = document;
    this.#report = document.report;
    this.#root = document.root;
    this.#variables = document.variables;
  }

  /** The command line checks its flags itself. The control API takes any input, so it is checked at this point. */
  checkGiven({ envs, secrets }: GivenVariables): void {
    for (const [name, value] of [...Object.entries(envs), ...Object.entries(secrets)]) {
      if (!variableName.test(name) || name === '__proto__')
        this.#report.at([], `${quote(name)}, given beside the file, is not the name of a variable`);
      else if (value.includes('\0')) this.#report.at([], `the value of ${name}, given beside the file, holds the NUL character`);
    }
    this.#checkSizes('envs', this.#variables.envs);
    this.#checkSizes('secrets', this.#variables.secrets);
  }

  #checkSizes(section: 'envs' | 'secrets', values: ReadonlyMap<string, string>): void {
    for (const [name, value] of values)
      if (Buffer.byteLength(`${name}=${value}\0`) > maxVariableBytes)
        this.#report.at(
          [section, name],
          'the value is larger than 128 KiB, and Linux passes none of that size to a program',
          largeValueHint,
        );
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
      this.#checkRun(fields.run);
      checkService(fields.service, this.#root, report);
      if (!this.#broken.has('resources')) checkServiceResources(fields.service, resources, this.#root, report);
    }
    const volumes = readVolumes(fields.volumes, report);
    const providerConfig = readProviderConfig(fields.config, report);
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
      volumes,
      providerConfig,
      otherFields: this.#otherFields(fields, isPool),
    };
  }

  /** Reports all problems of single fields. Returns the valid fields. */
  #validate(): TaskFields {
    const root = this.#root;
    const { output, issues } = parsePartly(taskSection, toValue(root), (path) => retyped(root, path));
    const context: FindingContext = { root, homes };
    for (const finding of findingsOf(issues, context)) {
      this.#broken.add(String(finding.path[0]));
      const node = nodeAt(root, finding.path);
      // A field that depends on a variable without a value is not checked: the missing value is the problem.
      if (!finding.key && node?.kind === 'scalar' && node.origin === 'withheld') continue;
      if (finding.key) this.#report.atKey(finding.path, finding.message, finding.hint);
      else this.#report.at(finding.path, finding.message, finding.hint);
    }
    return output ?? {};
  }

  /** A service without a program could never answer. */
  #checkRun(run: string | undefined): void {
    if (this.#broken.has('run') || (run !== undefined && run.trim() !== '')) return;
    const message = 'the service has no program: run is missing or empty';
    const hint = 'Add the command that starts the server, for instance: run: python3 -m http.server 8080';
    const entry = this.#document.written.entries.get('run');
    if (entry === undefined) this.#report.atKey(['service'], message, hint);
    else this.#report.fault({ at: entry.keyAt, message, hint });
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
    // The `kubernetes` part is applied; the rest is SkyPilot's own.
    if (Object.keys(fields.config ?? {}).some((name) => name !== 'kubernetes')) found.push('config');
    if (isPool && !found.includes('pool')) found.push('pool');
    if (this.#variables.hasManagedSecrets && !found.includes('managed_secrets')) found.push('managed_secrets');
    return found;
  }
}
