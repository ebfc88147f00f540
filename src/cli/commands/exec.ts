import { SvcError } from '../../shared/errors.ts';
import { quoteWord } from '../command-text.ts';
import type { CommandContext } from '../context.ts';
import { clusterNotFound } from '../name-patterns.ts';
import { submitJob } from '../submit-job.ts';
import { type TaskArgs, readTaskFile, readTaskText } from '../task-source.ts';

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

/**
 * SkyPilot users type a command where svc expects a file. A cluster that does not exist is reported first: it is an
 * error in both cases.
 */
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
