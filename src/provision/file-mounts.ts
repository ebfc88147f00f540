import { posix } from 'node:path';
import type { Task } from '../domain/task.ts';
import type { Provider } from '../providers/provider.ts';
import { SvcError } from '../shared/errors.ts';
import { printable } from '../shared/text.ts';

/** Whether a target is outside the working directory, where other programs may have files too. */
export function isOutsideWorkdir(target: string): boolean {
  const path = posix.normalize(target);
  return path.startsWith('/') || path === '~' || path.startsWith('~/') || path === '..' || path.startsWith('../');
}

/**
 * Throws SVC_NOT_SUPPORTED for a task with mounts outside its working directory if it may run at a provider without
 * them. On this machine, for example, these files are the user's own.
 */
export function refuseMountsAnywhere(task: Task, providers: readonly Pick<Provider, 'name' | 'capabilities'>[]): void {
  const outside = task.fileMounts.map(({ target }) => target).filter(isOutsideWorkdir);
  const unfit = providers.filter(({ capabilities }) => capabilities.mountsAnywhere !== true).map(({ name }) => name);
  if (outside.length === 0 || unfit.length === 0) return;
  const where = `At ${unfit.join(' and ')}, files can be put into the working directory only`;
  throw new SvcError('SVC_NOT_SUPPORTED', `${where}, not to ${outside.map(printable).join(', ')}.`, {
    hint: 'Use a relative target such as ./data, or name a provider with machines of its own in infra.',
  });
}
