import { join, resolve } from 'node:path';
import type { RouteInput } from '../api/contract.ts';
import type { ServiceSpec, Task } from '../domain/task.ts';
import { checkTaskFiles } from '../spec/check-task-files.ts';
import { checkTlsFiles } from '../spec/check-tls-files.ts';
import { collectEnvs } from '../spec/collect-envs.ts';
import { describeService } from '../spec/describe-service.ts';
import { loadTaskFile, type LoadedTask, type TaskOverrides } from '../spec/load-task-file.ts';
import { parseTask, serviceOf } from '../spec/parse-task.ts';
import { setPolicyFields } from '../spec/set-policy-fields.ts';
import type { TaskSource } from '../spec/task-document.ts';
import { referencedNames } from '../spec/substitute.ts';
import { refuseUnsupported } from '../spec/unsupported.ts';
import type { CommandContext } from './command.ts';

/** Additions of the command line to a task file. */
export interface TaskArgs {
  readonly env: readonly string[];
  readonly envFile: string | undefined;
  readonly secret: readonly string[];
  readonly secretFile: string | undefined;
  readonly workdir: string | undefined;
}

/** Texts of `describeService` about settings that most files omit: not worth a line. */
const unset: readonly string[] = ['No TLS', 'No spot policy'];

type TaskBody = Pick<RouteInput<'createService'>['body'], 'source' | 'file' | 'envs' | 'secrets' | 'workdir'>;

/** A valid service file, with a summary in words. */
export interface ServiceFile {
  readonly task: Task;
  readonly body: TaskBody;
  /** Lines for people. */
  readonly summary: readonly string[];
}

/**
 * Reads a service file and finds all its errors before a controller is started. Throws the errors of `loadTaskFile`,
 * `collectEnvs`, `refuseUnsupported`, `checkTaskFiles` and `checkTlsFiles`.
 */
export async function readServiceFile(path: string, args: TaskArgs, context: CommandContext): Promise<ServiceFile> {
  const { task, source } = await load(path, args, context);
  const service = serviceOf(task, source.file);
  refuseUnsupported(task, source);
  await checkTaskFiles(task, source);
  const warning = await checkTlsFiles(task, source, context.clock.now());
  const rows = describeService({ ...task, service }, source).filter(([, value]) => !unset.includes(value));
  const warnings = [warning, probeWarning({ ...task, service })].flatMap((text) => (text === undefined ? [] : `Warning: ${text}`));
  const width = Math.max(...rows.map(([label]) => label.length));
  const summary = rows.map(([label, value]) => `${`${label}:`.padEnd(width + 3)}${value}`);
  return {
    task,
    body: bodyOf(source, context),
    summary: [...summary, ...warnings],
  };
}

/** A probe that sends `$NAME` itself as a header fails without a hint at the reason. */
function probeWarning({
  envs,
  secrets,
  service: { readinessProbe },
}: Pick<Task, 'envs' | 'secrets'> & { readonly service: ServiceSpec }): string | undefined {
  const { headers, postData = '' } = readinessProbe;
  // A value may itself contain a `$`, and must not be shown.
  const ofValues = new Set([...Object.values(envs), ...Object.values(secrets)].flatMap(referencedNames));
  const names = [...new Set([...Object.values(headers), postData].flatMap(referencedNames))].filter((name) => !ofValues.has(name));
  if (names.length === 0) return undefined;
  const [subject, verb] = names.length === 1 ? ['it', 'is'] : ['they', 'are'];
  return `The readiness probe has ${names.map((name) => `$${name}`).join(', ')}; ${subject} ${verb} sent unchanged, because envs and secrets do not declare ${names.length === 1 ? 'it' : 'them'}.`;
}

/** A task that is a service. */
export type ServiceTask = Task & { readonly service: ServiceSpec };

/**
 * The service of a file, with other fields of `replica_policy` (`FIELD=VALUE` each). For a simulation: working files need
 * not exist, and a field that this version cannot act on is no error.
 */
export async function readSimulatedService(
  path: string,
  fields: readonly string[],
  args: TaskArgs,
  context: CommandContext,
): Promise<ServiceTask> {
  const { source } = await load(path, args, context);
  return simulatedService({ ...source, source: setPolicyFields(source.source, fields) });
}

/** The same of a text. */
export function simulatedService(source: TaskSource): ServiceTask {
  const task = parseTask(source);
  return { ...task, service: serviceOf(task, source.file) };
}

/** A valid task that runs once. */
export type OnceFile = Omit<ServiceFile, 'summary'>;

/** The same for a task that runs once. */
export async function readTaskFile(path: string, args: TaskArgs, context: CommandContext): Promise<OnceFile> {
  const { task, source } = await load(path, args, context);
  refuseUnsupported(task, source);
  await checkTaskFiles(task, source);
  return { task, body: bodyOf(source, context) };
}

/** The same for a task on the command line. */
export async function readTaskText(text: string, args: TaskArgs, context: CommandContext): Promise<OnceFile> {
  const source = { source: text, file: '-', ...overridesOf(args, context) };
  const task = parseTask(source);
  await checkTaskFiles(task, source);
  return { task, body: bodyOf(source, context) };
}

function overridesOf(args: TaskArgs, { env, cwd }: CommandContext): Required<TaskOverrides> {
  const { env: envFlags, envFile, secret: secretFlags, secretFile } = args;
  const collected = collectEnvs({ envFlags, envFile, secretFlags, secretFile }, env);
  return { ...collected, workdir: args.workdir === undefined ? undefined : resolve(cwd, args.workdir) };
}

async function load(path: string, args: TaskArgs, context: CommandContext): Promise<LoadedTask> {
  return loadTaskFile(path === '-' ? path : resolve(context.cwd, path), overridesOf(args, context));
}

function bodyOf({ source, file, envs, secrets, workdir }: TaskSource, { cwd }: CommandContext): TaskBody {
  // The controller has another working directory: a task from standard input gets the path of a file in this folder.
  return { source, file: file === '-' ? join(cwd, '-') : file, envs, secrets, ...(workdir !== undefined && { workdir }) };
}
