import type { MachineId, MachineStatus, Provider } from '../providers/provider.ts';
import type { Clock } from '../shared/clock.ts';
import { withDeadline } from '../shared/deadline.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import { wakeable } from '../shared/wakeable.ts';

const noAnswer = (): Error => new SvcError('SVC_PLACE_FAILED', 'no answer');

/** How often a booting machine is looked at, ms; longer for places that take minutes would save calls, but local ones take none. */
const bootPollMs = 500;

/** A place that cannot be asked about a booting machine for so long, ms, is as good as gone. */
const silenceLimitMs = 60_000;

/** How to wait for a machine. */
export interface BootOptions {
  /** What it is called in errors: `Machine ID of PLACE` when absent. */
  readonly name?: string;
  readonly limitMs?: number;
  /** Told what keeps the machine from running, in its place's own words, once for each change. */
  readonly onMessage?: (message: string) => Promise<void>;
  /** Told all that the place says of it, where a message is the short of that; once for each change. */
  readonly onDetail?: (detail: string) => Promise<void>;
}

/**
 * Settles when the machine runs; throws SVC_MACHINE_LOST when it goes away instead, or does not run within `limitMs` of having room, and SVC_BOOT_FAILED when its
 * place says why it did not, or that no machine like it would ever run.
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
  const told = wakeable(clock, signal);
  const over = new AbortController();
  provider.watch?.(told.wake, AbortSignal.any([signal, over.signal]));
  let startedAt = clock.monotonic();
  let heardAt = startedAt;
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
        heardAt = clock.monotonic();
      } catch (error) {
        signal.throwIfAborted();
        if (clock.monotonic() - heardAt >= silenceLimitMs) throw lost(`cannot be asked about (${messageOf(error)})`);
      }
      if (status?.state === 'running') return;
      if (status !== undefined && 'detail' in status && status.detail !== detail) {
        ({ detail } = status);
        if (detail !== undefined) await onDetail?.(detail);
      }
      if (status?.state === 'gone') {
        const { reason, message: why, isHopeless, mayPass } = status;
        // A place that says why did not take it back or lose it on the way: another one there would most likely fare the same.
        if (isHopeless === true || (why !== undefined && reason === 'unknown' && mayPass !== true))
          throw lost(`did not start: ${withoutStop(why ?? 'its place does not say why')}`, 'SVC_BOOT_FAILED');
        throw lost(`went away while booting${why === undefined ? ` (${reason})` : `: ${withoutStop(why)}`}`);
      }
      // How long it may wait for room is for its place to say: it boots from then on.
      if (status?.state === 'booting' && status.isQueued === true) startedAt = heardAt;
      if (status?.state === 'booting' && status.message !== undefined && status.message !== message) {
        message = status.message;
        await onMessage?.(message);
      }
      await told.pause(bootPollMs);
      signal.throwIfAborted();
    }
  } finally {
    over.abort();
  }
}

/** Sentences of others are put into our own, which have a full stop already. */
const withoutStop = (sentence: string): string => sentence.trim().replace(/\.$/, '');

const gonePollMs = 100;

/** Removes a machine and settles when the place confirms that it is gone; throws when it is not within `timeoutMs`. */
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

/** Tries to give a machine back, and the pause before the second one, ms; it doubles. */
const giveBackAttempts = 6;
const giveBackPauseMs = 1_000;
const giveBackTimeoutMs = 60_000;

/**
 * Removes a machine that nobody wants any more, or whatever a place made for a key. Never throws: what cannot be removed, or shows up later, is
 * found by the sweep for machines that no record knows.
 */
export async function giveBack(
  provider: Provider,
  machine: { readonly id: MachineId } | { readonly key: string },
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const remove = async (inner: AbortSignal): Promise<void> => {
    const ids = 'id' in machine ? [machine.id] : (await provider.list({ 'svc-key': machine.key }, { signal: inner })).map(({ id }) => id);
    for (const id of ids) await provider.destroy(id, { signal: inner });
  };
  for (let attempt = 1; attempt <= giveBackAttempts && !signal.aborted; attempt += 1) {
    try {
      return await withDeadline(clock, giveBackTimeoutMs, remove, noAnswer, signal);
    } catch {
      // Tried again, in the end by the sweep.
      await clock.sleep(giveBackPauseMs * 2 ** (attempt - 1), signal);
    }
  }
}
