import type { Config } from '../domain/config.ts';
import type { Places } from '../provision/places.ts';
import type { Clock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import type { HomePaths } from '../shared/paths.ts';
import { readControllerRecord, writeControllerRecord, type ControllerRecord } from './controller-record.ts';
import { withLaunchLock } from './launch-lock.ts';

/** What the controller on another machine is brought up and reached with. */
export interface LauncherDeps {
  readonly paths: HomePaths;
  readonly places: Places;
  readonly config: () => Promise<Config>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called with what is being done, for people. */
  readonly onStep: (text: string) => void;
}

/** Changes the record on disk. */
export const noteIn =
  ({ paths }: Pick<LauncherDeps, 'paths'>) =>
  (change: Partial<ControllerRecord>): ControllerRecord => {
    const record = readControllerRecord(paths.controllerRecord);
    if (record === undefined) throw new SvcError('SVC_ABORTED', 'The controller was removed meanwhile.');
    const changed = { ...record, ...change };
    writeControllerRecord(paths.controllerRecord, changed);
    return changed;
  };

/** Works on the controller while no other command of this home does. */
export function locked<Result>(deps: LauncherDeps, work: () => Promise<Result>): Promise<Result> {
  const { paths, clock, signal, onStep } = deps;
  const onWait = (): void => onStep('Waiting for another command that works on the controller');
  return withLaunchLock(`${paths.controllerRecord}.lock`, { clock, signal, onWait }, work);
}

/** What is said to whoever asks for a controller that is on its way out. */
export function leaving(): SvcError {
  return new SvcError('SVC_CONTROLLER_UNREACHABLE', 'The controller is being removed.', { hint: 'Finish that first: svc controller down' });
}
