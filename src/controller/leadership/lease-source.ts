import type { LeaseLock } from '../../domain/leadership.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { noFence } from '../../shared/fence.ts';
import type { Random } from '../../shared/random.ts';
import { databaseLease, leaseAbove } from '../../store/database-lease.ts';
import { openStore } from '../../store/open-store.ts';
import type { StoreSettings } from '../../store/store-settings.ts';

/** Where the candidates find their lease. Plain data: it is passed to a thread. */
export interface LeaseSource {
  /** A Kubernetes Lease object; undefined: the lease is in the database. */
  readonly kubernetes: { readonly namespace: string; readonly name: string } | undefined;
  /** Its address may contain a password. */
  readonly state: StoreSettings;
}

const kubernetesLeasePattern = /^kubernetes:([^/]+)\/([^/]+)$/;

/**
 * The lease to acquire; undefined without rivals. `setting` is SVC_LEASE: `kubernetes:<namespace>/<name>`, or
 * `database`, the default with a configured database. Throws SVC_INVALID_CONFIG.
 */
export function leaseSource(setting: string | undefined, state: StoreSettings): LeaseSource | undefined {
  if (setting === undefined && state.database === undefined) return undefined;
  if (setting === undefined || setting === 'database') return { kubernetes: undefined, state };
  const [, namespace, name] = kubernetesLeasePattern.exec(setting) ?? [];
  if (namespace !== undefined && name !== undefined) return { kubernetes: { namespace, name }, state };
  throw new SvcError('SVC_INVALID_CONFIG', `SVC_LEASE is '${setting}', which names no lease.`, {
    hint: 'Set it to kubernetes:<namespace>/<name>, to database, or not at all.',
  });
}

/** Opens a lease. Its calls are not fenced: a process makes them before it leads. */
export async function openLease({ kubernetes, state }: LeaseSource, clock: Clock, random: Random): Promise<LeaseLock> {
  const store = await openStore({ ...state, clock });
  if (kubernetes === undefined) return databaseLease(store);
  const { openKubeApi } = await import('../../kubernetes/contexts.ts');
  const { kubernetesLease } = await import('../../kubernetes/lease.ts');
  const api = openKubeApi('in-cluster', { fence: noFence, clock, random });
  return leaseAbove(kubernetesLease(api, kubernetes.namespace, kubernetes.name, clock), store.leadership);
}

/** Exit code of processes that may not act any more. The process manager then restarts the controller. */
export const lostLeaseExitCode = 7;

/** The config in the hello of a process that was started for a term: the leader of another term renews the process. */
export function termConfig(term: number): string {
  return `term-${term}`;
}
