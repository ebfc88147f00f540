import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import {
  type ProcessIdentity,
  identifyProcess,
  isAlive,
  isStopped,
  readIdentity,
  signalProcess,
} from '../../shared/system/process-identity.ts';
import { NoAnswerError } from '../../api/client-exchange.ts';
import type { ApiClient } from '../../api/client.ts';

/** Timeout for a controller to end, ms. It lets calls finish and writes its state first. */
const endTimeoutMs = 30_000;
const pollMs = 50;

/** A controller that leaves this many calls without an answer hangs. On a busy machine, one may take its whole time. */
const mostCalls = 3;

interface EndDeps {
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Ends a controller's process, if it still runs, and waits for its end; services continue. The signal goes to that
 * exact process: of several commands that find an old controller, none ends the new one. Throws
 * SVC_CONTROLLER_UNREACHABLE when it does not end.
 */
export async function retireController(pid: number, deps: EndDeps): Promise<void> {
  const daemon = identifyProcess(pid);
  if (daemon === undefined) return;
  // Same effect as `svc controller stop --keep-services`; see `controller/main.ts`.
  signalProcess(daemon, 'SIGTERM');
  await waitUntilControllerGone(daemon, deps);
}

/** Waits for the end of a controller that was asked to end. Throws SVC_CONTROLLER_UNREACHABLE when it does not end. */
export async function waitUntilControllerGone(daemon: ProcessIdentity, { clock, signal }: EndDeps): Promise<void> {
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

/**
 * Asks a controller, and kills its process when a signal has stopped it or it does not answer repeated calls: then this
 * returns undefined, as without a controller. Services continue.
 */
export async function askOrKill<Health>(
  identityFile: string,
  ask: () => Promise<Health | undefined>,
  deps: EndDeps,
): Promise<Health | undefined> {
  const daemon = readIdentity(identityFile);
  if (daemon === undefined || !isAlive(daemon)) return ask();
  for (let call = 1; call <= mostCalls && !isStopped(daemon.pid); call += 1) {
    try {
      return await ask();
    } catch (error) {
      deps.signal.throwIfAborted();
      // Any other error, such as a full queue of connections, says nothing about the process.
      if (!(error instanceof SvcError && error.cause instanceof NoAnswerError)) throw error;
    }
  }
  signalProcess(daemon, 'SIGKILL');
  await waitUntilControllerGone(daemon, deps);
  return undefined;
}

/** Throws SVC_CONTROLLER_BUSY while a controller has services or clusters, and names them. */
export async function refuseWithServices(api: ApiClient): Promise<void> {
  const services = (await api.call('listServices')).services.map(({ name }) => name);
  const clusters = (await api.call('listClusters')).clusters.map(({ name }) => name);
  const names = [...services, ...clusters];
  if (names.length === 0) return;
  throw new SvcError('SVC_CONTROLLER_BUSY', `The controller still looks after: ${names.join(', ')}.`, {
    hint: 'Take them down first: svc serve down --all; svc down --all',
  });
}
