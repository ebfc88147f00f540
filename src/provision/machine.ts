import type { Refused } from '../domain/placement/refusals.ts';
import { ProviderRefusal } from '../providers/provider-refusal.ts';
import type { MachineId, MachineStatus, Provider } from '../providers/provider.ts';
import { delayMs, type Backoff } from '../shared/backoff.ts';
import type { Clock } from '../shared/clock.ts';
import { linkedController, withDeadline } from '../shared/deadline.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import { wakeable } from '../shared/loop.ts';

const noAnswer = (): Error => new SvcError('SVC_PLACE_FAILED', 'no answer');

/** ms. Providers that take minutes could be polled less often, but polls of local machines are free. */
const bootPollMs = 500;

/** A booting machine counts as lost when its provider has not answered for this time, ms. */
const silenceLimitMs = 60_000;

interface BootOptions {
  /** For errors; default: `Machine ID of LOCATION`. */
  readonly name?: string;
  readonly limitMs?: number;
  /** Called for each change of the provider's message about why the machine does not run yet. */
  readonly onMessage?: (message: string) => Promise<void>;
  /** Called for each change of the provider's full text, which the message shortens. */
  readonly onDetail?: (detail: string) => Promise<void>;
}

/**
 * Settles when the machine runs. Throws a `ProviderRefusal` when it ends before; SVC_MACHINE_LOST when it does not run
 * within `limitMs` of having room, or its provider does not answer; SVC_BOOT_FAILED when the provider reports that no
 * machine like it would run.
 */
export async function waitUntilRunning(
  provider: Provider,
  machineId: MachineId,
  clock: Clock,
  signal: AbortSignal,
  { name = `Machine ${machineId} of ${provider.name}`, limitMs = Number.POSITIVE_INFINITY, onMessage, onDetail }: BootOptions = {},
): Promise<void> {
  const lost = (what: string, code: 'SVC_MACHINE_LOST' | 'SVC_BOOT_FAILED' = 'SVC_MACHINE_LOST'): SvcError =>
    new SvcError(code, `${name} ${what}.`);
  const wakeup = wakeable(clock, signal);
  const { controller: over, unlink } = linkedController(signal);
  provider.watch?.(wakeup.wake, over.signal);
  let startedAt = clock.monotonic();
  let lastSeenAt = startedAt;
  let message: string | undefined;
  let detail: string | undefined;
  try {
    for (;;) {
      const left = limitMs - (clock.monotonic() - startedAt);
      const last = message === undefined ? '' : ` (${withoutStop(message)})`;
      if (left <= 0) throw lost(`did not come up within ${Math.round(limitMs / 60_000)} minutes${last}`);
      let status: MachineStatus | undefined;
      try {
        const ask = (inner: AbortSignal) => provider.inspect([machineId], { signal: inner });
        const statuses = await withDeadline(clock, Math.min(left, silenceLimitMs), ask, noAnswer, signal);
        status = statuses.get(machineId) ?? { state: 'gone', reason: 'unknown' };
        lastSeenAt = clock.monotonic();
      } catch (error) {
        signal.throwIfAborted();
        if (clock.monotonic() - lastSeenAt >= silenceLimitMs) throw lost(`cannot be asked about (${messageOf(error)})`);
      }
      if (status?.state === 'running') return;
      if (status !== undefined && 'detail' in status && status.detail !== detail) {
        ({ detail } = status);
        if (detail !== undefined) await onDetail?.(detail);
      }
      if (status?.state === 'gone') {
        const { reason, message: why, isHopeless, mayPass, refusal } = status;
        // With a reported cause, it was neither preempted nor lost in transit. Another one here would likely fail too.
        if (isHopeless === true || (why !== undefined && reason === 'unknown' && mayPass !== true && refusal === undefined))
          throw lost(`did not start: ${withoutStop(why ?? 'its provider does not say why')}`, 'SVC_BOOT_FAILED');
        // A provider that preempts a booting machine has no capacity.
        const kind = refusal?.kind ?? (reason === 'preempted' ? 'capacity' : 'failed-launch');
        const what = `went away while booting${why === undefined ? ` (${reason})` : `: ${withoutStop(why)}`}`;
        throw new ProviderRefusal(kind, refusal?.scope ?? 'zone', `${name} ${what}.`);
      }
      // The provider limits the time in its queue. The boot limit starts at the end of the queue.
      if (status?.state === 'booting' && status.isQueued === true) startedAt = lastSeenAt;
      if (status?.state === 'booting' && status.message !== undefined && status.message !== message) {
        message = status.message;
        await onMessage?.(message);
      }
      await wakeup.pause(bootPollMs);
      signal.throwIfAborted();
    }
  } finally {
    unlink();
    over.abort();
  }
}

/** The message around it has its own full stop. */
const withoutStop = (sentence: string): string => sentence.trim().replace(/\.$/, '');

const gonePollMs = 100;

/** Destroys a machine and waits for the confirmation. Throws when that takes longer than `timeoutMs`. */
export async function destroyMachine(
  provider: Provider,
  machineId: MachineId,
  clock: Clock,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  const deadline = clock.monotonic() + timeoutMs;
  await provider.destroy(machineId, { signal });
  for (;;) {
    const status = (await provider.inspect([machineId], { signal })).get(machineId);
    if (status === undefined || status.state === 'gone') return;
    if (clock.monotonic() >= deadline) {
      throw new SvcError(
        'SVC_MACHINE_LOST',
        `Machine ${machineId} of ${provider.name} is still there ${Math.round(timeoutMs / 1_000)} s after it was removed.`,
      );
    }
    await clock.sleep(gonePollMs, signal);
    signal.throwIfAborted();
  }
}

const releaseAttempts = 6;
const releaseBackoff: Backoff = { firstMs: 1_000, longestMs: 60_000 };
const releaseTimeoutMs = 60_000;

/**
 * Removes a machine that is not needed, or all machines of a key. Never throws: the sweep for machines without a record
 * removes what remains or appears later.
 */
export async function releaseMachine(
  provider: Provider,
  machine: { readonly id: MachineId } | { readonly key: string },
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const remove = async (inner: AbortSignal): Promise<void> => {
    const ids = 'id' in machine ? [machine.id] : (await provider.list({ 'svc-key': machine.key }, { signal: inner })).map(({ id }) => id);
    for (const id of ids) await provider.destroy(id, { signal: inner });
  };
  for (let attempt = 1; attempt <= releaseAttempts && !signal.aborted; attempt += 1) {
    try {
      return await withDeadline(clock, releaseTimeoutMs, remove, noAnswer, signal);
    } catch {
      await clock.sleep(delayMs(releaseBackoff, attempt), signal);
    }
  }
}

/** Whether a machine ended before it ran, or cannot run. Another one may. */
export function isBootFailure(error: unknown): error is SvcError {
  return (
    error instanceof ProviderRefusal ||
    (error instanceof SvcError && (error.code === 'SVC_MACHINE_LOST' || error.code === 'SVC_BOOT_FAILED'))
  );
}

/** The refusal for a machine that ended before it ran. If the provider gave no cause, retries back off. */
export function lateRefusal(error: SvcError): Refused {
  const { refusal: kind, scope } = error instanceof ProviderRefusal ? error : { refusal: 'failed-launch' as const, scope: 'zone' as const };
  return { kind, scope, reason: error.message };
}
