import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Clock } from '../shared/clock.ts';
import { systemClock } from '../shared/clock.ts';
import { envVar, wholeEnv } from '../shared/env.ts';
import { exitCodes } from '../shared/error-codes.ts';
import type { Logger } from '../shared/log.ts';
import { servicePaths, type HomePaths } from '../shared/paths.ts';
import { whyReplaced } from '../store/database-file.ts';
import { tryProcessLock } from '../shared/system/process-lock.ts';
import type { DaemonContext } from './daemon-context.ts';
import { foldersIn } from './folders-in.ts';
import { endAt } from './supervise/supervisor.ts';

/** Timeout for a reconciler's hello, ms. By then it also notices by itself that its database was replaced. */
const greetMs = 2_000;
/** How long the kernel may take to end a process, ms. */
const endMs = 10_000;
const pollMs = 50;

/**
 * Call this before opening a database file that replaced another one. Reconcilers still use the former file; they end
 * by themselves within seconds. A stopped or hung one is killed, because two reconcilers must not act for one service.
 * Opening the new database earlier is unsafe: SQLite shares memory by the file's name.
 */
export async function endReconcilersOfReplaced(paths: HomePaths, log: Logger, clock: Clock = systemClock): Promise<void> {
  const why = whyReplaced(paths.database);
  if (why === undefined) return;
  log.warn({ why }, 'the state database was replaced; reconcilers of the former one are ended');
  await Promise.all(foldersIn(paths.servicesDir).map((key) => endReconciler(paths, key, log, clock)));
}

async function endReconciler(paths: HomePaths, key: string, log: Logger, clock: Clock): Promise<void> {
  const { reconcilerSocket, reconcilerIdentity, reconcilerLock: lock } = servicePaths(paths, key);
  await endAt(reconcilerSocket, { clock, greetMs, graceMs: 0, identityFile: reconcilerIdentity });
  const deadline = clock.monotonic() + endMs;
  while (existsSync(lock) && clock.monotonic() < deadline) {
    const held = tryProcessLock(lock);
    if (held !== undefined) return held.release();
    await clock.sleep(pollMs);
  }
  if (existsSync(lock)) log.error({ key }, 'a reconciler of the former state database does not end');
}

/** Whether systemd (248 or newer) started this very process, as an installed unit does, and so restarts it. */
export const isStartedBySystemd = (pid: number): boolean => envVar('SYSTEMD_EXEC_PID') === String(pid);

/**
 * Ends this daemon when its database file is replaced, and starts another on the new file, unless a process manager
 * does. The services' processes continue. Closes nothing: SQLite would write its log into the new file.
 */
export function renewWhenReplaced({ store, clock, log, paths, controllerHost }: DaemonContext): void {
  store.file?.watch(clock, (why) => {
    log.error({ why }, 'the state database was replaced: the controller restarts with the present file');
    const [, entry] = process.argv;
    // A service manager restarts it; another process would hold the lock and leave the manager without a controller.
    if (controllerHost === undefined && !isStartedBySystemd(process.pid) && entry !== undefined)
      spawn(process.execPath, [entry], { cwd: paths.home, detached: true, stdio: 'inherit', env: { ...wholeEnv() } }).unref();
    process.exit(exitCodes.transient);
  });
}
