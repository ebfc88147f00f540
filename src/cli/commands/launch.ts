import { SvcError } from '../../shared/errors.ts';
import { checkName } from '../name-patterns.ts';
import { controllerName } from '../listing/cluster-listing.ts';
import type { CommandContext } from '../context.ts';
import { submitJob } from '../submit-job.ts';
import { readTaskFile, type TaskArgs } from '../task-source.ts';

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
