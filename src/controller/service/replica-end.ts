import type { EndCause } from '../../domain/replica-state.ts';
import { jobLogPath } from '../../provision/job.ts';
import { destroyMachine } from '../../provision/machine.ts';
import { machineNodes, stopNodes } from '../../provision/node-jobs.ts';
import type { Provider } from '../../providers/provider.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import type { Wakeable } from '../../shared/wakeable.ts';
import type { BalancerView } from './balancer-client.ts';
import { linkLog } from '../kept-log.ts';
import { findMachines, replicaTags } from '../recorded-machines.ts';
import { jobName } from './replica-job.ts';
import type { ReplicaHandle } from './replica-handle.ts';
import { rotationMember } from './rotation.ts';
import type { ServiceContext } from './service-context.ts';

/** How long the balancer may take to confirm a set; it takes milliseconds unless it is being restarted, and then it has no streams to keep. */
const appliedTimeoutMs = 1_000;
/** From SIGTERM to SIGKILL. */
const killGraceMs = 10_000;
const drainPollMs = 100;
/** How long a place may take to confirm that a machine is gone. */
const goneTimeoutMs = 300_000;
const attemptsBeforeFailed = 3;
/** A machine or a place that does not answer, as while it is being restarted, is not yet a machine that cannot be removed, ms. */
const silenceBeforeFailedMs = 60_000;
/**
 * How long the link to the balancer may be away before its requests count as gone, ms: one that hands over or is started again is back much sooner.
 */
const lostLinkMs = 5_000;
const firstRetryMs = 1_000;
const longestRetryMs = 60_000;

/** Causes after which nothing of the program is left to finish a request. */
const deadCauses: readonly EndCause[] = ['program-failed', 'machine-lost', 'preempted', 'provision', 'initial-delay'];

/**
 * Unmark, let in-flight requests end, SIGTERM, SIGKILL, destroy, confirm. Ends when nothing is left, however long that takes; `hurry` cuts the pauses
 * between attempts short.
 */
export async function endReplica(
  context: ServiceContext,
  handle: ReplicaHandle,
  view: () => BalancerView,
  signal: AbortSignal,
  hurry: Wakeable,
): Promise<void> {
  const cause = handle.record.endCause ?? 'user';
  if (!deadCauses.includes(cause)) await drain(context, handle, view, signal);
  context.rotation.remove(handle.id);
  const beganAt = context.clock.monotonic();
  for (let attempt = 1; !signal.aborted; attempt += 1) {
    try {
      await removeMachine(context, handle, cause, signal);
      await handle.happen({ type: 'machine-gone', cause }, { cause, message: 'Nothing is left of it.' });
      return;
    } catch (error) {
      if (signal.aborted) return;
      const message = `Removing its machine failed: ${messageOf(error)}`;
      context.log.error({ err: error, replica: handle.id, attempt }, 'removing a machine failed');
      const isSilence = error instanceof SvcError && error.kind === 'transient';
      if (attempt >= attemptsBeforeFailed && !(isSilence && context.clock.monotonic() - beganAt < silenceBeforeFailedMs))
        await handle.happen({ type: 'cleanup-failed' }, { cause: 'cleanup-failed', message }, { reason: message });
      else await handle.note({ reason: message });
      await hurry.pause(Math.min(longestRetryMs, firstRetryMs * 2 ** (attempt - 1)));
    }
  }
}

/** Waits until the balancer has no request of the replica any more, at most the grace time of the service. */
async function drain(context: ServiceContext, handle: ReplicaHandle, view: () => BalancerView, signal: AbortSignal): Promise<void> {
  const { address, version, endRequestedAt, firstReadyAt } = handle.record;
  // One that was never ready never had a request.
  if (address === null || firstReadyAt === null) return;
  const { service } = await context.task(version);
  if (service === undefined) return;
  context.rotation.drain(rotationMember(handle.record, address, service));
  const deadline = (endRequestedAt ?? context.clock.now()) + service.gracefulTerminationSeconds * 1_000;
  let asked: { readonly hellos: number; readonly reports: number } | undefined;
  let lostAt: number | undefined;
  while (!signal.aborted && context.clock.now() < deadline) {
    const { connected, hellos, reports, inFlight } = view();
    lostAt = connected ? undefined : (lostAt ?? context.clock.monotonic());
    if (lostAt !== undefined && context.clock.monotonic() - lostAt > lostLinkMs) return;
    if (connected && hellos !== asked?.hellos) {
      // Only a report made after the set was in force can say that nothing is in flight; a balancer that took over must have the set first.
      const isSettled = await context.rotation.settled(appliedTimeoutMs);
      asked = { hellos, reports: view().reports + (isSettled ? 0 : 1) };
    } else if (connected && asked !== undefined && reports > asked.reports && (inFlight[String(handle.id)] ?? 0) === 0) return;
    await context.clock.sleep(drainPollMs, signal);
  }
}

async function removeMachine(context: ServiceContext, handle: ReplicaHandle, cause: EndCause, signal: AbortSignal): Promise<void> {
  // By tag rather than by id: a place may have accepted before the id was recorded.
  for (const { provider, id } of await findMachines(context, handle.record, replicaTags(context, handle.id), signal)) {
    if (cause !== 'machine-lost' && cause !== 'preempted') await stopPolitely(context, handle, provider, id, signal);
    await destroyMachine(provider, id, context.clock, goneTimeoutMs, signal);
  }
}

/** A machine that cannot be worked on any more is destroyed all the same. */
async function stopPolitely(
  context: ServiceContext,
  handle: ReplicaHandle,
  provider: Provider,
  id: Parameters<Provider['remote']>[0],
  signal: AbortSignal,
): Promise<void> {
  try {
    const { numNodes } = await context.task(handle.record.version);
    const nodes = await machineNodes(provider, id, numNodes, signal);
    await stopNodes(nodes, jobName, { graceMs: killGraceMs, signal });
    const [node] = nodes;
    if (numNodes === 1 && node !== undefined) linkLog(node.remote, jobLogPath(node.remote, jobName), context.files.jobLog(handle.id));
  } catch (error) {
    context.log.warn({ err: error, replica: handle.id }, 'could not stop its program politely');
  }
}
