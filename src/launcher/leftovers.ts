import type { Provider } from '../providers/provider.ts';
import { destroyMachine } from '../provision/machine.ts';
import { SvcError } from '../shared/errors.ts';
import type { LauncherDeps } from './launcher-deps.ts';

/** How long the place may take to confirm that the machine is gone, ms. */
export const goneTimeoutMs = 600_000;

/** How long a place may hold on to what belonged to machines that are gone, and how often it is asked, ms. */
const releaseTimeoutMs = 180_000;
const releasePollMs = 2_000;

/**
 * Every machine in every place that the controller launched: without it nobody looks after them. A place that cannot be used just now, as a login
 * has expired, is asked as well, and says so: what is there must not be forgotten.
 */
export async function removeLeftovers(key: string, deps: LauncherDeps): Promise<void> {
  const { places, clock, signal, onStep } = deps;
  for (const { name } of await places.states()) {
    const provider = await places.provider(name);
    const machines = await provider.list({ 'svc-owner': key }, { signal });
    for (const { id } of machines) {
      onStep(`Removing machine ${id}`);
      await destroyMachine(provider, id, clock, goneTimeoutMs, signal);
    }
    for (const owner of new Set([...machines.flatMap(({ tags }) => tags['svc-service-key'] ?? []), key]))
      await releaseWhenFree(provider, owner, deps);
  }
}

/** A place may hold on for a while to what a machine that is going away uses. */
export async function releaseWhenFree(provider: Provider, owner: string, { clock, signal }: LauncherDeps): Promise<void> {
  const deadline = clock.monotonic() + releaseTimeoutMs;
  for (;;) {
    try {
      return await provider.release(owner, { signal });
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== 'SVC_PLACE_FAILED' || clock.monotonic() >= deadline) throw error;
      await clock.sleep(releasePollMs, signal);
      signal.throwIfAborted();
    }
  }
}
