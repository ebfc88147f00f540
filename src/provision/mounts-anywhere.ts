import type { Task } from '../domain/task.ts';
import type { Provider } from '../providers/provider.ts';
import { SvcError } from '../shared/errors.ts';
import { printable } from '../shared/quote.ts';
import { isOutsideWorkdir } from './file-mounts.ts';

/**
 * Refuses a task that wants files outside its working directory when it may come to one of the places where that is not possible, as on this very
 * machine, whose files are the user's own. Throws SVC_NOT_SUPPORTED with the place and what to do.
 */
export function refuseMountsAnywhere(task: Task, places: readonly Pick<Provider, 'name' | 'capabilities'>[]): void {
  const outside = task.fileMounts.map(({ target }) => target).filter(isOutsideWorkdir);
  const unfit = places.filter(({ capabilities }) => capabilities.mountsAnywhere !== true).map(({ name }) => name);
  if (outside.length === 0 || unfit.length === 0) return;
  const where = `At ${unfit.join(' and ')}, files can be put into the working directory only`;
  throw new SvcError('SVC_NOT_SUPPORTED', `${where}, not to ${outside.map(printable).join(', ')}.`, {
    hint: 'Use a relative target such as ./data, or name a place with machines of its own below infra.',
  });
}
