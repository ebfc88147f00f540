import { type ServiceRecord, subjectEvent } from '../../domain/records.ts';
import { pausedUpdate, resumedUpdate } from '../../domain/update-stage.ts';
import { SvcError } from '../../shared/errors.ts';
import { compareAndSwap } from '../../store/compare-and-swap.ts';
import type { DaemonContext } from '../daemon-context.ts';

/**
 * Holds the update of a service, or lets it go on. `find` reads the service, or throws. Throws SVC_NO_UPDATE when no
 * update is in progress. `changed`: whether it was not held, or held, before.
 */
export async function pauseUpdate(
  { store, clock }: Pick<DaemonContext, 'store' | 'clock'>,
  find: () => Promise<ServiceRecord>,
  paused: boolean,
): Promise<{ readonly version: number; readonly changed: boolean }> {
  let changed = true;
  let version = 0;
  const read = async () => {
    const service = await find();
    return { service, replicas: await store.replicas.list(service.name) };
  };
  await compareAndSwap(read, ({ service, replicas }) => {
    const { name, state, memory } = service;
    const { update } = memory;
    version = service.version;
    if (update === undefined || memory.gaveUp)
      throw new SvcError('SVC_NO_UPDATE', `No update of service '${name}' is in progress.`, { hint: `See: svc serve status ${name}` });
    changed = (update.paused !== undefined) !== paused;
    if (!changed) return undefined;
    const at = clock.now();
    const next = paused ? pausedUpdate(update, service, replicas, at) : resumedUpdate(update, at);
    const message = paused ? `A user holds the update to version ${version}.` : `A user lets the update to version ${version} go on.`;
    const event = subjectEvent(service, { at, from: state, to: state, cause: paused ? 'update-paused' : 'update-resumed', message });
    return store.services.update(service, { memory: { ...memory, update: next } }, event);
  });
  return { version, changed };
}
