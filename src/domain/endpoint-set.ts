import type { BalancerReplica } from './balancer-link.ts';
import { locationName } from './location-name.ts';
import type { ReplicaRecord } from './records.ts';
import { replicaWeight } from './replica/replica-capacity.ts';
import type { ReplicaReport } from './replica/replica-report.ts';
import { isAlive, isEnded, type EndCause } from './replica/replica-state.ts';
import type { ServiceSpec } from './task.ts';

/** After an end for one of these causes, the program cannot finish a request. */
const deadCauses: readonly EndCause[] = ['program-failed', 'machine-lost', 'preempted', 'provision', 'initial-delay'];

/** Whether a replica that ends for this cause can still finish its requests. */
export const canDrain = (cause: EndCause): boolean => !deadCauses.includes(cause);

/** A replica, its report, and the service section of its version. The section is undefined when it cannot be read. */
export interface EndpointCandidate {
  readonly record: ReplicaRecord;
  readonly report: ReplicaReport;
  readonly spec: ServiceSpec | undefined;
}

/**
 * The replicas that the balancer knows, with weights and states. Pure: depends only on records and reports. `shares`: of
 * the requests, by version; a version without one has share 0. Without `shares`, versions do not matter.
 */
export function endpointSet(candidates: readonly EndpointCandidate[], shares?: ReadonlyMap<number, number>): readonly BalancerReplica[] {
  return candidates.flatMap(({ record, report, spec }) => {
    const standing = endpointState(record, report);
    if (standing === undefined || record.address === null) return [];
    const { id, offer, address, version } = record;
    const endpoint = {
      id,
      address,
      place: offer === null ? 'unknown' : locationName(offer),
      weight: spec === undefined ? 1 : replicaWeight(spec, offer),
    };
    return [{ ...endpoint, ...standing, version, ...(shares !== undefined && { share: shares.get(version) ?? 0 }) }];
  });
}

/** undefined: the balancer need not know the replica. */
function endpointState(record: ReplicaRecord, report: ReplicaReport): Pick<BalancerReplica, 'state' | 'lost'> | undefined {
  const { state, firstReadyAt, endCause } = record;
  // A replica that was never ready has no requests. One that passes its probe serves before its record shows it.
  const mayHaveRequests = firstReadyAt !== null || report.probe === 'passed';
  if (isEnded(state) || !mayHaveRequests) return undefined;
  if (report.isGone) return { state: 'draining', lost: 'gone' };
  if (!isAlive(state)) return canDrain(endCause ?? 'user') ? draining(report) : { state: 'draining', lost: 'gone' };
  switch (report.probe) {
    case 'passed':
      return { state: 'serving' };
    case 'slow':
      return { state: 'draining' };
    case 'unanswered':
      return { state: 'draining', lost: 'hung' };
    case 'failed':
      return undefined;
    case 'unknown':
      // After a restart, a ready replica serves until a probe fails.
      return state === 'READY' ? { state: 'serving' } : undefined;
  }
}

/** A hung replica finishes no request. */
const draining = ({ probe }: ReplicaReport): Pick<BalancerReplica, 'state' | 'lost'> =>
  probe === 'unanswered' ? { state: 'draining', lost: 'hung' } : { state: 'draining' };

/** For `judgeSlowProbe`: replicas that get requests, including this one, and additionally those whose probe is slow. */
export function servingCapacity(id: number, candidates: readonly EndpointCandidate[]): { readonly serving: number; readonly all: number } {
  const others = candidates.filter(({ record }) => record.id !== id);
  const serving = 1 + endpointSet(others).filter(({ state }) => state === 'serving').length;
  const slow = others.filter(({ record, report }) => isAlive(record.state) && report.probe === 'slow' && !report.isGone).length;
  return { serving, all: serving + slow };
}
