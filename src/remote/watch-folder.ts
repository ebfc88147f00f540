import { readdirSync, statSync, watch, type FSWatcher } from 'node:fs';
import { basename, join } from 'node:path';
import type { CancelTimer, Clock } from '../shared/clock.ts';

/** Poll interval while the system does not report changes, ms. */
const pollMs = 200;

/**
 * Calls `onChange` soon after files directly in a folder changed, until the signal aborts. Uses inotify where possible;
 * polls while the folder does not exist, or when the system has no watches left.
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
        // This watch does not report changes of a recreated folder. The end of the old one is reported under its own
        // name; a new one may exist by then.
        if (name === basename(dir) || signature(dir) === '') startPolling();
        onChange();
      });
    } catch {
      // The folder does not exist, or no watches are left. Both may change, so polling goes on.
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
      // The callback may have aborted the signal.
      if (signal.aborted || !startWatching()) return;
      cancelPoll?.();
      cancelPoll = undefined;
      // Changes between the last poll and the start of the watch.
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

/** Differs when names, sizes or times of the files in a folder differ; empty when the folder cannot be read. */
function signature(dir: string): string {
  try {
    return `.${readdirSync(dir)
      .map((name) => {
        const stats = statSync(join(dir, name), { throwIfNoEntry: false });
        return `${name}\0${stats?.size}\0${stats?.mtimeMs}\0${stats?.ino}`;
      })
      .join('\0')}`;
  } catch {
    return '';
  }
}
