import { readdirSync, statSync, watch, type FSWatcher } from 'node:fs';
import { basename, join } from 'node:path';
import type { CancelTimer, Clock } from '../shared/clock.ts';

/** How often a folder is looked at while the system cannot tell of changes. */
const pollMs = 200;

/**
 * Calls `onChange` soon after files directly in a folder changed, until the signal aborts. The system tells of changes (inotify) where it can; while
 * the folder does not exist, or the system has no watches left to give, the folder is looked at instead.
 */
export function watchFolder(dir: string, onChange: () => void, clock: Clock, signal: AbortSignal): void {
  if (signal.aborted) return;
  let watcher: FSWatcher | undefined;
  let cancelPoll: CancelTimer | undefined;
  let seen = signature(dir);

  const notice = (): void => {
    const now = signature(dir);
    if (now === seen) return;
    seen = now;
    onChange();
  };
  const startWatching = (): boolean => {
    try {
      watcher = watch(dir, { persistent: false }, (_kind, name) => {
        // A folder that was removed and made again is another one, of which this watch will not tell. Its end is told under its own name; it may be
        // there again by then.
        if (name === basename(dir) || signature(dir) === '') startPolling();
        onChange();
      });
    } catch {
      // Not there, or no watches left: both may change.
      return false;
    }
    watcher.on('error', startPolling);
    return true;
  };
  const startPolling = (): void => {
    watcher?.close();
    watcher = undefined;
    cancelPoll ??= clock.every(pollMs, () => {
      notice();
      // Whoever was told may have had enough.
      if (signal.aborted || !startWatching()) return;
      cancelPoll?.();
      cancelPoll = undefined;
      // What happened between the look and the watch.
      notice();
    });
  };

  if (!startWatching()) startPolling();
  signal.addEventListener(
    'abort',
    () => {
      watcher?.close();
      cancelPoll?.();
    },
    { once: true },
  );
}

/** Changes with the names, sizes and times of the files in a folder; empty when it cannot be read. */
function signature(dir: string): string {
  try {
    return `.${readdirSync(dir)
      .map((name) => {
        const stats = statSync(join(dir, name), { throwIfNoEntry: false });
        return `${name}\0${stats?.size}\0${stats?.mtimeMs}\0${stats?.ino}`;
      })
      .join('\0')}`;
  } catch {
    // Not there (any more).
    return '';
  }
}
