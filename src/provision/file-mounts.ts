import { join, posix } from 'node:path';
import type { Task } from '../domain/task.ts';
import type { LocalSource } from './files/delivery.ts';
import type { Provider } from '../providers/provider.ts';
import { SvcError } from '../shared/errors.ts';
import { printable } from '../shared/text.ts';

/** A mount. `target` is a path on the machine: relative to the working directory, below `~/`, or absolute. */
export interface MountedFiles {
  /** A copy on this machine, or an `s3:` or `https:` address from which the machine downloads. */
  readonly source: LocalSource | string;
  readonly target: string;
}

/**
 * Sources and targets of a task's mounts. Local sources were copied to `snapshotDir` at `up`. `name` identifies the
 * copies of this version among all copies of the owner.
 */
export function fileMounts(task: Task, snapshotDir: string, name: string): readonly MountedFiles[] {
  return task.fileMounts.map(({ source, target }, index) => ({
    source: source.kind === 'path' ? { path: join(snapshotDir, String(index)), name: `${name}-mount-${index}` } : source.uri,
    target,
  }));
}

/** Whether a mount's target lies outside the working directory, where other programs may have files too. */
export function isOutsideWorkdir(target: string): boolean {
  const path = posix.normalize(target);
  return path.startsWith('/') || path === '~' || path.startsWith('~/') || path === '..' || path.startsWith('../');
}

/**
 * Refuses a task with mounts outside its working directory if it may run at a provider that cannot have them. On this
 * machine, for example, these files are the user's own. Throws SVC_NOT_SUPPORTED with the provider and the remedy.
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
