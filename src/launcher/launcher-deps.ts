import type { Config } from '../domain/config.ts';
import type { Providers } from '../provision/providers.ts';
import type { Clock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import type { HomePaths } from '../shared/paths.ts';
import {
  isUnrequested,
  readControllerRecord,
  removeIfUnrequested,
  writeControllerRecord,
  type ControllerRecord,
} from './controller-record.ts';
import { withFreeLock, withLaunchLock } from './launch-lock.ts';

/** Dependencies of deploying and reaching a remote controller. */
export interface LauncherDeps {
  readonly paths: HomePaths;
  readonly providers: Providers;
  readonly config: () => Promise<Config>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onStep: (text: string) => void;
}

/** Makes a function that changes the record on disk. */
export const recordPatcher =
  ({ paths }: Pick<LauncherDeps, 'paths'>) =>
  (change: Partial<ControllerRecord>): ControllerRecord => {
    const record = readControllerRecord(paths.controllerRecord);
    if (record === undefined) throw new SvcError('SVC_ABORTED', 'The controller was removed meanwhile.');
    const changed = { ...record, ...change };
    writeControllerRecord(paths.controllerRecord, changed);
    return changed;
  };

/** Runs `work` on the controller while no other command of this home does. */
export function locked<Result>(deps: LauncherDeps, work: () => Promise<Result>): Promise<Result> {
  const { paths, clock, signal, onStep } = deps;
  const onWait = (pid: number | undefined): void =>
    onStep(`Waiting for another command that works on the controller${pid === undefined ? '' : ` (process ${pid})`}`);
  return withLaunchLock(lockOf(paths), { clock, signal, onWait }, work);
}

const lockOf = ({ controllerRecord }: Pick<HomePaths, 'controllerRecord'>): string => `${controllerRecord}.lock`;

/**
 * Removes the record of a command that was killed before it called a provider, unless another command works on it.
 * Otherwise commands would search for a controller that does not exist.
 */
export function dropUnrequestedRecord(paths: HomePaths): void {
  const record = readControllerRecord(paths.controllerRecord);
  if (record !== undefined && isUnrequested(record)) withFreeLock(lockOf(paths), () => removeIfUnrequested(paths.controllerRecord));
}

/** The error for a controller that is being removed. */
export function terminatingError(): SvcError {
  return new SvcError('SVC_CONTROLLER_UNREACHABLE', 'The controller is being removed.', { hint: 'Finish that first: svc controller down' });
}
