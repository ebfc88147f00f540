import { isoTime, type Clock } from '../shared/clock.ts';
import type { LeaseLock, LeaseView } from '../domain/leadership.ts';
import type { KubeApi, KubeDraft, KubeMetadata, KubeObject } from './kube-api.ts';
import { pathOfAll, pathOfOne } from './paths.ts';

interface LeaseObject extends KubeObject {
  readonly spec?: {
    readonly holderIdentity?: string | null;
    readonly leaseDurationSeconds?: number | null;
    readonly leaseTransitions?: number | null;
    readonly acquireTime?: string | null;
    readonly renewTime?: string | null;
  };
}

/** On every Lease of svc: the standard field holds whole seconds and allows no zero. */
export const durationAnnotation = 'svc-lease-duration-ms';
/** The field has 32 bits. Uncapped, no process could take a Lease whose field was set to the maximum. */
const mostTransitions = 2 ** 31 - 1;
const neverHeld: LeaseView = { holder: null, term: 0, renewal: '', durationMs: 0 };

/**
 * A Kubernetes Lease. Each write is a compare-and-set by the object's version. The times in it are for readers; no
 * decision depends on them.
 */
export function kubernetesLease(
  api: Pick<KubeApi, 'create' | 'get' | 'replace'>,
  namespace: string,
  name: string,
  clock: Clock,
): LeaseLock {
  const collection = pathOfAll('Lease', namespace);
  const path = pathOfOne('Lease', namespace, name);
  // Last read: a replacement must keep what other programs wrote into it.
  let known: LeaseObject | undefined;

  const view = (lease: LeaseObject | undefined): LeaseView => {
    known = lease;
    return viewOf(lease);
  };

  return {
    async read(signal) {
      return view(await api.get<LeaseObject>(path, { signal }));
    },
    async write(seen, holder, durationMs, signal) {
      const spec = specOf(known, seen, { holder, durationMs, now: microTime(clock.now()) });
      const annotations = { [durationAnnotation]: String(durationMs) };
      if (seen.renewal === '') {
        const draft: KubeDraft = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name, namespace, annotations }, spec };
        const made = await api.create<LeaseObject>(collection, draft, { signal });
        return made === undefined ? undefined : view(made);
      }
      const metadata = known?.metadata.resourceVersion === seen.renewal ? known.metadata : undefined;
      // Another process has renewed since the caller's view.
      if (metadata === undefined) return undefined;
      const next = { ...known, metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations } }, spec };
      const written = await api.replace<LeaseObject>(path, next, { signal });
      return written === undefined ? undefined : view(written);
    },
  };
}

/** Reads the lease without the ability to take it. */
export async function readKubernetesLease(
  api: Pick<KubeApi, 'get'>,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<LeaseView> {
  return viewOf(await api.get<LeaseObject>(pathOfOne('Lease', namespace, name), { signal }));
}

function specOf(
  known: LeaseObject | undefined,
  seen: LeaseView,
  { holder, durationMs, now }: { readonly holder: string; readonly durationMs: number; readonly now: string },
): NonNullable<LeaseObject['spec']> {
  const isRenewal = seen.holder === holder;
  // From the caller's view, not from the object: this repairs a Lease that was edited by hand.
  const term = isRenewal ? seen.term : seen.term + 1;
  const madeAt = known === undefined ? term - 1 : madeAtSeconds(known.metadata);
  return {
    holderIdentity: holder,
    leaseDurationSeconds: Math.max(1, Math.ceil(durationMs / 1000)),
    leaseTransitions: Math.min(Math.max(term - madeAt, 0), mostTransitions),
    acquireTime: isRenewal ? (known?.spec?.acquireTime ?? now) : now,
    renewTime: now,
  };
}

/**
 * The term is the number of transitions plus the second of the object's creation by the API server's clock. A recreated
 * Lease starts at zero transitions, but terms must not decrease: processes would ignore the next leader.
 */
function viewOf(lease: LeaseObject | undefined): LeaseView {
  if (lease === undefined) return neverHeld;
  const { metadata, spec = {} } = lease;
  const holder = spec.holderIdentity ?? '';
  return {
    holder: holder === '' ? null : holder,
    term: madeAtSeconds(metadata) + (spec.leaseTransitions ?? 0),
    renewal: metadata.resourceVersion,
    durationMs: durationOf(metadata, spec.leaseDurationSeconds ?? 0),
  };
}

function madeAtSeconds(metadata: KubeMetadata): number {
  const ms = Date.parse(metadata.creationTimestamp ?? '');
  return Number.isNaN(ms) ? 0 : Math.floor(ms / 1000);
}

/** The annotation counts only if it fits the field: another program may have renewed the Lease without it. */
function durationOf(metadata: KubeMetadata, seconds: number): number {
  const exact = Number(metadata.annotations?.[durationAnnotation]);
  return Number.isFinite(exact) && Math.max(1, Math.ceil(exact / 1000)) === seconds ? exact : seconds * 1000;
}

/** Six digits after the point, as Kubernetes requires. */
function microTime(ms: number): string {
  return isoTime(ms).replace('Z', '000Z');
}
