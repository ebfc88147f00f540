import type { Clock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import { identifyProcess, isAlive, signalProcess, type ProcessIdentity } from '../shared/process-identity.ts';

/** How long a controller may take to end, ms; it lets calls finish and writes its state. */
const endTimeoutMs = 30_000;
const pollMs = 50;

/** What waiting for a controller needs. */
export interface EndDeps {
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Ends the process of a controller and sees it gone; services go on. Nothing happens when it has ended meanwhile: it is that very process which is
 * told, so that of several commands that find an old controller none ends the new one. Throws SVC_CONTROLLER_UNREACHABLE when it does not end.
 */
export async function retireController(pid: number, deps: EndDeps): Promise<void> {
  const daemon = identifyProcess(pid);
  if (daemon === undefined) return;
  // As `svc controller stop --keep-services` does; see `controller/main.ts`.
  signalProcess(daemon, 'SIGTERM');
  await seeControllerGone(daemon, deps);
}

/** Settles when a controller that was told to end has ended. Throws SVC_CONTROLLER_UNREACHABLE when it does not. */
export async function seeControllerGone(daemon: ProcessIdentity, { clock, signal }: EndDeps): Promise<void> {
  const deadline = clock.monotonic() + endTimeoutMs;
  while (isAlive(daemon)) {
    if (clock.monotonic() >= deadline) {
      const { pid } = daemon;
      throw new SvcError('SVC_CONTROLLER_UNREACHABLE', `The controller (process ${pid}) does not end.`, { hint: `Run: kill -9 ${pid}` });
    }
    await clock.sleep(pollMs, signal);
    signal.throwIfAborted();
  }
}
