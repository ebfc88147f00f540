import { isoTime, type Clock } from '../shared/clock.ts';
import type { LeaseLock, LeaseView } from '../domain/leadership.ts';
import type { KubeApi, KubeDraft, KubeMetadata, KubeObject } from './kube-api.ts';
import { pathOfAll, pathOfOne } from './paths.ts';

/** An object of coordination.k8s.io/v1 as far as it is used. */
interface LeaseObject extends KubeObject {
  readonly spec?: {
    readonly holderIdentity?: string | null;
    readonly leaseDurationSeconds?: number | null;
    readonly leaseTransitions?: number | null;
    readonly acquireTime?: string | null;
    readonly renewTime?: string | null;
  };
}

/** Of every Lease that svc has written. The field for it counts whole seconds, and allows no zero. */
export const durationAnnotation = 'svc-lease-duration-ms';
/** The field is a number of 32 bits; one that somebody has set to the highest must not keep others from taking the lease. */
const mostTransitions = 2 ** 31 - 1;
const neverHeld: LeaseView = { holder: null, term: 0, renewal: '', durationMs: 0 };

/**
 * A Lease of Kubernetes. What makes the write a compare-and-set is the object's version, which the API server checks. The times in it are for people:
 * nothing is decided by them.
 */
export function kubernetesLease(
  api: Pick<KubeApi, 'create' | 'get' | 'replace'>,
  namespace: string,
  name: string,
  clock: Clock,
): LeaseLock {
  const collection = pathOfAll('Lease', namespace);
  const path = pathOfOne('Lease', namespace, name);
  // Of the object that was seen last: a replacement has to carry what others wrote into it.
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
      // What was seen is not the last that was read: somebody renewed since.
      if (metadata === undefined) return undefined;
      const next = { ...known, metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations } }, spec };
      const written = await api.replace<LeaseObject>(path, next, { signal });
      return written === undefined ? undefined : view(written);
    },
  };
}

/** The same for who only wants to know who holds it. */
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
  // From what was seen, not from what the object says: so it gets right again when somebody has edited it.
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
 * The term is the number of transitions on top of the second in which the object was made, by the API server's clock: a Lease that somebody deleted
 * begins again with none, and terms must not become smaller, or nobody would obey the next leader.
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

/** The annotation counts only while it fits the field: another program may have renewed without it. */
function durationOf(metadata: KubeMetadata, seconds: number): number {
  const exact = Number(metadata.annotations?.[durationAnnotation]);
  return Number.isFinite(exact) && Math.max(1, Math.ceil(exact / 1000)) === seconds ? exact : seconds * 1000;
}

/** Six digits after the point, as Kubernetes wants. */
function microTime(ms: number): string {
  return isoTime(ms).replace('Z', '000Z');
}
