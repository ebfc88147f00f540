import type { MachineId, MachineStatus, Provider } from '../providers/provider.ts';
import type { Clock } from '../shared/clock.ts';
import { withDeadline } from '../shared/deadline.ts';
import { messageOf, SvcError } from '../shared/errors.ts';

const noAnswer = (): Error => new SvcError('SVC_PLACE_FAILED', 'no answer');

/** How often a booting machine is looked at, ms; longer for places that take minutes would save calls, but local ones take none. */
const bootPollMs = 500;

/** A place that cannot be asked about a booting machine for so long, ms, is as good as gone. */
const silenceLimitMs = 60_000;

/** Settles when the machine runs; throws SVC_MACHINE_LOST when it goes away instead, or does not run within `limitMs`. */
export async function waitUntilRunning(
  provider: Provider,
  machineId: MachineId,
  clock: Clock,
  signal: AbortSignal,
  limitMs = Number.POSITIVE_INFINITY,
): Promise<void> {
  const lost = (what: string): SvcError => new SvcError('SVC_MACHINE_LOST', `Machine ${machineId} of ${provider.name} ${what}.`);
  const startedAt = clock.monotonic();
  let heardAt = startedAt;
  for (;;) {
    const left = limitMs - (clock.monotonic() - startedAt);
    if (left <= 0) throw lost(`did not come up within ${Math.round(limitMs / 60_000)} minutes`);
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
    if (status?.state === 'gone') throw lost(`went away while booting (${status.reason})`);
    await clock.sleep(bootPollMs, signal);
    signal.throwIfAborted();
  }
}

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
