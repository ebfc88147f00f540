import { SvcError } from '../../shared/errors.ts';
import type { ReplicaHandle } from './replica-handle.ts';
import type { ServiceContext } from './service-context.ts';

/** What a look at a machine or its place found; nothing when they could not be looked at now. Throws what is no passing failure. */
export async function tolerantly<Found>(
  look: () => Promise<Found | undefined>,
  { log }: Pick<ServiceContext, 'log'>,
  { id }: Pick<ReplicaHandle, 'id'>,
  signal: AbortSignal,
): Promise<Found | undefined> {
  try {
    return await look();
  } catch (error) {
    if (signal.aborted) return undefined;
    if (!(error instanceof SvcError) || error.kind !== 'transient') throw error;
    log.warn({ code: error.code, replica: id }, 'a machine, or its place, does not answer');
    return undefined;
  }
}
