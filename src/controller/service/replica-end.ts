import { canDrain } from '../../domain/endpoint-set.ts';
import { jobLogPath } from '../../provision/job.ts';
import type { MachineNode } from '../../providers/provider.ts';
import { delayMs, type Backoff } from '../../shared/backoff.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import type { Wakeable } from '../../shared/loop.ts';
import type { BalancerView } from './balancer-client.ts';
import { boundEndedLog, linkLog } from '../kept-log.ts';
import { findMachines, killGraceMs, removeMachine, replicaTags } from '../../provision/recorded-machines.ts';
import { jobName } from './replica-program.ts';
import type { ReplicaHandle } from './replica-handle.ts';
import type { ServiceContext } from './service-context.ts';

/** How long the balancer may take to confirm a set, ms. Only a restarting one takes long; it has no streams to keep. */
const appliedTimeoutMs = 1_000;
const drainPollMs = 100;
const attemptsBeforeFailed = 3;
/** A removal counts as failed only after this much silence, ms: the machine or the provider may be restarting. */
const silenceBeforeFailedMs = 60_000;
/** After losing the connection for this long, ms, the balancer's requests count as gone. A handover takes far less. */
const lostLinkMs = 5_000;
const removalBackoff: Backoff = { firstMs: 1_000, longestMs: 60_000 };

const killedText = `Its program did not end within ${killGraceMs / 1_000} s of SIGTERM and was killed (SIGKILL). Nothing is left of it.`;

const removalFailed = 'Removing its machine failed: ';

/** Why a replica ended. The failure of its removal follows in the record only while the machine may still exist. */
function withoutRemoval(reason: string | null): string | null {
  const [ended = ''] = (reason ?? '').split(removalFailed, 1);
  return ended === '' ? null : ended.trimEnd();
}

/**
 * Drain, SIGTERM, SIGKILL, destroy, confirm: ends when nothing is left, however long that takes. `retryNow` cuts the
 * pauses between attempts short. `isSilent`: the machine takes no commands, so only the provider can end the program.
 */
export async function endReplica(
  context: ServiceContext,
  handle: ReplicaHandle,
  view: () => BalancerView,
  signal: AbortSignal,
  retryNow: Wakeable,
  isSilent: boolean,
): Promise<void> {
  const cause = handle.record.endCause ?? 'user';
  if (canDrain(cause)) await drainReplica(context, handle, view, signal);
  const beganAt = context.clock.monotonic();
  let isKilled = false;
  for (let attempt = 1; !signal.aborted; attempt += 1) {
    try {
      isKilled = (await removeMachines(context, handle, isSilent || cause === 'machine-lost' || cause === 'preempted', signal)) || isKilled;
      // Nothing is left that could answer requests still in flight.
      context.reports.report(handle.id, { isGone: true });
      const message = isKilled ? killedText : 'Nothing is left of it.';
      await handle.transition({ type: 'machine-gone', cause }, { cause, message }, { reason: withoutRemoval(handle.record.reason) });
      await boundEndedLog(context.files.jobLog(handle.id), context.clock);
      return;
    } catch (error) {
      if (signal.aborted) return;
      const message = `${removalFailed}${messageOf(error)}`;
      const reason = [withoutRemoval(handle.record.reason) ?? [], message].flat().join(' ');
      context.log.error({ err: error, replica: handle.id, attempt }, 'removing a machine failed');
      const isSilence = error instanceof SvcError && error.kind === 'transient';
      if (attempt >= attemptsBeforeFailed && !(isSilence && context.clock.monotonic() - beganAt < silenceBeforeFailedMs))
        await handle.transition({ type: 'cleanup-failed' }, { cause: 'cleanup-failed', message }, { reason });
      else await handle.patch({ reason });
      await retryNow.pause(delayMs(removalBackoff, attempt));
    }
  }
}

/** Waits until the balancer has no request of the replica, at most for the service's grace period. */
export async function drainReplica(
  context: ServiceContext,
  handle: ReplicaHandle,
  view: () => BalancerView,
  signal: AbortSignal,
): Promise<void> {
  const { address, version, endRequestedAt, firstReadyAt } = handle.record;
  // A replica that was never ready never had a request.
  if (address === null || firstReadyAt === null) return;
  const { service } = await context.task(version);
  if (service === undefined) return;
  const deadline = (endRequestedAt ?? context.clock.now()) + service.gracefulTerminationSeconds * 1_000;
  let asked: { readonly hellos: number; readonly reports: number } | undefined;
  let lostAt: number | undefined;
  while (!signal.aborted && context.clock.now() < deadline) {
    const { connected, hellos, reports, inFlight } = view();
    lostAt = connected ? undefined : (lostAt ?? context.clock.monotonic());
    if (lostAt !== undefined && context.clock.monotonic() - lostAt > lostLinkMs) return;
    if (connected && hellos !== asked?.hellos) {
      // Only a report made after the set was applied proves that nothing is in flight; a successor gets the set first.
      const isSettled = await context.endpoint.settled(appliedTimeoutMs);
      asked = { hellos, reports: view().reports + (isSettled ? 0 : 1) };
    } else if (connected && asked !== undefined && reports > asked.reports && (inFlight[String(handle.id)] ?? 0) === 0) return;
    await context.clock.sleep(drainPollMs, signal);
  }
}

/** Whether a program had to be killed. */
async function removeMachines(context: ServiceContext, handle: ReplicaHandle, isDead: boolean, signal: AbortSignal): Promise<boolean> {
  const { clock, files, log } = context;
  let wasKilled = false;
  const removal = {
    jobs: async () => (isDead ? [] : [{ name: jobName, numNodes: (await context.task(handle.record.version)).numNodes }]),
    onStopped([node, ...others]: readonly MachineNode[], isKilled: boolean) {
      wasKilled ||= isKilled;
      if (node !== undefined && others.length === 0) linkLog(node.remote, jobLogPath(node.remote, jobName), files.jobLog(handle.id));
    },
    onUnstopped: (error: unknown) => log.warn({ err: error, replica: handle.id }, 'could not stop its program politely'),
    clock,
  };
  // By tag, not by id: a provider may have accepted before the id was recorded.
  for (const machine of await findMachines(context, handle.record, replicaTags(context, handle.id), signal)) {
    await removeMachine(machine, removal, signal);
    freeQuota(context, handle);
  }
  return wasKilled;
}

/** The ending machine still counted against the quota, which may be the only reason why its replacement was refused. */
function freeQuota({ history, clock }: ServiceContext, { record: { offer: recorded } }: ReplicaHandle): void {
  history.endRefusals(
    ({ kind, offer }) => kind === 'quota' && offer.provider === recorded?.provider && offer.region === recorded.region,
    clock.now(),
  );
}
