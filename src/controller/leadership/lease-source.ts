import type { LeaseLock } from '../../domain/leadership.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { noFence } from '../../shared/fence.ts';
import type { Random } from '../../shared/random.ts';
import { databaseLease, leaseAbove } from '../../store/database-lease.ts';
import { openStore } from '../../store/open-store.ts';
import type { StoreSettings } from '../../store/store-settings.ts';

/** Where the candidates for one controller see their lease. Plain data: it is given to a thread. */
export interface LeaseSource {
  /** An object of Kubernetes; undefined: it is in the database. */
  readonly kubernetes: { readonly namespace: string; readonly name: string } | undefined;
  /** Its address may hold a password. */
  readonly state: StoreSettings;
}

const kubernetesLeasePattern = /^kubernetes:([^/]+)\/([^/]+)$/;

/**
 * The lease that this controller is to ask for; undefined where it has no rivals. `wish` is the value of SVC_LEASE: `kubernetes:<namespace>/<name>`, or
 * `database`, which is what a configured database means anyway. Throws SVC_INVALID_CONFIG.
 */
export function leaseSource(wish: string | undefined, state: StoreSettings): LeaseSource | undefined {
  if (wish === undefined && state.database === undefined) return undefined;
  if (wish === undefined || wish === 'database') return { kubernetes: undefined, state };
  const [, namespace, name] = kubernetesLeasePattern.exec(wish) ?? [];
  if (namespace !== undefined && name !== undefined) return { kubernetes: { namespace, name }, state };
  throw new SvcError('SVC_INVALID_CONFIG', `SVC_LEASE is '${wish}', which names no lease.`, {
    hint: 'Set it to kubernetes:<namespace>/<name>, to database, or not at all.',
  });
}

/** Opens a lease. Its own calls are not fenced: they are how one becomes the leader. */
export async function openLease({ kubernetes, state }: LeaseSource, clock: Clock, random: Random): Promise<LeaseLock> {
  const store = await openStore({ ...state, clock });
  if (kubernetes === undefined) return databaseLease(store);
  const { openKubeApi } = await import('../../kubernetes/contexts.ts');
  const { kubernetesLease } = await import('../../kubernetes/lease.ts');
  const api = openKubeApi('in-cluster', { fence: noFence, clock, random });
  return leaseAbove(kubernetesLease(api, kubernetes.namespace, kubernetes.name, clock), store.leadership);
}
