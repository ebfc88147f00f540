import type { ApiClient } from '../../api/client.ts';
import type { RouteReply, JobView } from '../../api/contract.ts';
import { SvcError } from '../../shared/errors.ts';
import { quoteWord } from '../command-text.ts';
import type { CommandContext } from '../command.ts';
import { showLog } from '../listing/log-lines.ts';
import { controllerName } from '../listing/cluster-listing.ts';
import { checkName, clusterNotFound, parseId } from '../name-patterns.ts';
import { readTaskFile, type TaskArgs, readTaskText, type OnceFile } from '../task-source.ts';

interface LaunchArgs extends TaskArgs {
  readonly file: string;
  readonly cluster: string | undefined;
  readonly detach: boolean;
  readonly yes: boolean;
  readonly json: boolean;
}

/** `svc launch`: runs a task on a cluster. Makes the cluster when none of that name exists. */
export async function launch(args: LaunchArgs, context: CommandContext): Promise<number> {
  if (args.cluster !== undefined) checkName(args.cluster);
  if (args.cluster === controllerName) throw new SvcError('SVC_BAD_NAME', `The name '${controllerName}' belongs to the controller.`);
  const file = await readTaskFile(args.file, args, context);
  return submitJob({ ...file, mode: 'launch', cluster: args.cluster }, args, context);
}

interface ExecArgs extends TaskArgs {
  readonly cluster: string;
  readonly file: string | undefined;
  readonly command: readonly string[];
  readonly detach: boolean;
  readonly json: boolean;
}

/** `svc exec`: runs a task, or a command, on an existing cluster. */
export async function exec(args: ExecArgs, context: CommandContext): Promise<number> {
  if ((args.file === undefined) === (args.command.length === 0)) {
    throw new SvcError('SVC_USAGE', 'Give either a task file or a command after --.', { hint: 'Run: svc exec --help' });
  }
  const task =
    args.file === undefined
      ? // JSON is YAML, so a value cannot end its field.
        await readTaskText(JSON.stringify({ run: shellLine(args.command) }), args, context)
      : await readTaskFile(args.file, args, context).catch(async (error: unknown) => {
          throw await commandMeant(error, args.cluster, args.file ?? '', context);
        });
  if ((await context.connection.existing()) === undefined) throw clusterNotFound(args.cluster);
  return submitJob({ ...task, mode: 'exec', cluster: args.cluster }, args, context);
}

/** Users of SkyPilot type a command instead of a file. A missing cluster is reported first: an error in both cases. */
async function commandMeant(error: unknown, cluster: string, word: string, { connection }: CommandContext): Promise<unknown> {
  if (!(error instanceof SvcError) || error.code !== 'SVC_FILE_NOT_FOUND') return error;
  const { clusters } = (await (await connection.existing())?.call('listClusters')) ?? { clusters: [] };
  if (!clusters.some(({ name }) => name === cluster)) return clusterNotFound(cluster, clusters);
  return new SvcError(error.code, error.message, {
    hint: `Check the path. For a command: svc exec ${cluster} -- ${quoteWord(word)}`,
    cause: error,
  });
}

/** Words as one line of sh. A single word is already a line, as with ssh: `svc exec dev -- 'ls | wc -l'`. */
export function shellLine(words: readonly string[]): string {
  const [first = ''] = words;
  return words.length === 1 ? first : words.map(quoteWord).join(' ');
}

/** Timeout, ms: a new machine and the copy of a large workdir take minutes. */
const launchTimeoutMs = 600_000;

interface Job extends OnceFile {
  readonly mode: 'launch' | 'exec';
  /** A generated name when absent. */
  readonly cluster: string | undefined;
}

/** Follows the job to its end unless `options` say otherwise. Returns the exit code. */
async function submitJob(
  { task, body, mode, cluster: requestedCluster }: Job,
  options: { readonly detach: boolean; readonly json: boolean },
  context: CommandContext,
): Promise<number> {
  const { ui, connection } = context;
  const progress = ui.progress();
  progress.now('Handing the task to the controller');
  const onStep = (text: string): void => progress.now(text);
  const hand = async (): Promise<{ readonly api: ApiClient; readonly reply: RouteReply<'launch'> }> => {
    const api = await connection.client(onStep, task.resources);
    const upload = await connection.bring(task, body.file, onStep);
    const request = {
      ...body,
      mode,
      ...(requestedCluster !== undefined && { cluster: requestedCluster }),
      ...(upload !== undefined && { upload }),
    };
    return { api, reply: await api.call('launch', { body: request, timeoutMs: launchTimeoutMs }) };
  };
  const { api, reply } = await hand().finally(() => progress.stop());
  const { cluster, jobId } = reply;
  const ports = new Set(task.resources.choices.flatMap((choice) => choice.ports));
  if (!options.json && mode === 'launch' && ports.size > 0)
    ui.say(`The log says where its ports (${[...ports].join(', ')}) are reached, and so does: svc status ${cluster.name}`);
  if (options.json) {
    ui.json(reply);
    return 0;
  }
  ui.say(`Job ${jobId} on cluster '${cluster.name}'.`);
  if (options.detach) {
    ui.say(`To read its output: svc logs ${cluster.name} ${jobId}`);
    return 0;
  }
  return followJob(api, cluster.name, jobId, context);
}

interface LogsArgs {
  readonly cluster: string;
  readonly job: string | undefined;
  readonly follow: boolean | undefined;
  readonly tail: number | undefined;
}

/** `svc logs`: the output of a job. When it is followed to its end, the exit code reports how the job ended. */
export async function logs(args: LogsArgs, context: CommandContext): Promise<number> {
  const { ui, connection, signal } = context;
  const api = await connection.existing();
  const clusters = (await api?.call('listClusters'))?.clusters ?? [];
  const cluster = clusters.find(({ name }) => name === args.cluster);
  if (api === undefined || cluster === undefined) throw clusterNotFound(args.cluster, clusters);
  const job = args.job === undefined ? cluster.jobs.at(-1)?.id : parseId(args.job, 'job');
  const follow = args.follow ?? true;
  const query = { follow, ...(job !== undefined && { job }), ...(args.tail !== undefined && { tail: args.tail }) };
  await showLog(api.text('clusterLogs', { params: { name: args.cluster }, query }), ui);
  return follow && job !== undefined && !signal.aborted ? reportJob(api, args.cluster, job, context) : 0;
}

async function followJob(api: ApiClient, cluster: string, job: number, context: CommandContext): Promise<number> {
  const { ui, signal } = context;
  await showLog(api.text('clusterLogs', { params: { name: cluster }, query: { job, follow: true } }), ui);
  if (signal.aborted) {
    ui.say(`Job ${job} goes on. To read its output: svc logs ${cluster} ${job}`);
    return 0;
  }
  return reportJob(api, cluster, job, context);
}

/** Returns the job's exit code. */
async function reportJob(api: ApiClient, cluster: string, job: number, { ui }: CommandContext): Promise<number> {
  const found = (await api.call('listClusters')).clusters.find(({ name }) => name === cluster);
  const result = found?.jobs.find(({ id }) => id === job);
  if (result === undefined) {
    ui.say(found?.reason ?? `The cluster '${cluster}' is gone, and job ${job} with it.`);
    return unknownJobCode;
  }
  const code = result.exitCode === null ? '' : ` (exit code ${result.exitCode})`;
  ui.say(`Job ${job} on '${cluster}': ${result.status}${code}`);
  return jobExitCodes[result.status];
}

/** Exit codes by job status, as users of similar tools know them. A failed job differs from a failed command. */
export const jobExitCodes: Readonly<Record<JobView['status'], number>> = {
  SUCCEEDED: 0,
  FAILED: 100,
  FAILED_SETUP: 100,
  PENDING: 101,
  SETTING_UP: 101,
  RUNNING: 101,
  CANCELLED: 103,
};

/** For a job whose cluster no longer exists. */
export const unknownJobCode = 102;
