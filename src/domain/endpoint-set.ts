import type { BalancerReplica } from './balancer-link.ts';
import { locationName } from './location-name.ts';
import type { ReplicaRecord, ServiceRecord } from './records.ts';
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

/** The share of the requests that the service's version gets. The last version that worked before gets the rest. */
interface TrafficSplit {
  readonly version: number;
  /** 0 to 1 */
  readonly share: number;
  readonly rest: number;
}

/** The split that an update in progress asks for; undefined: every serving replica serves alike. */
export function trafficSplit({ version, memory }: Pick<ServiceRecord, 'version' | 'memory'>): TrafficSplit | undefined {
  const { share, from = version } = memory.update ?? {};
  const { provenVersion: proven = from, provenBefore = from } = memory;
  return share === undefined ? undefined : { version, share, rest: proven === version ? provenBefore : proven };
}

/**
 * The replicas that the balancer knows, with weights, states and shares. Pure: depends only on records, reports and the
 * split.
 */
export function endpointSet(candidates: readonly EndpointCandidate[], split?: TrafficSplit): readonly BalancerReplica[] {
  const endpoints = withoutShares(candidates);
  if (split === undefined) return endpoints;
  const serving = endpoints.filter(({ state, version }) => state === 'serving' && version !== split.version);
  const trusted = serving.filter(({ version }) => version === split.rest);
  const others = trusted.length > 0 ? trusted : serving;
  const shareOf = (version: number | undefined): number =>
    version === split.version
      ? split.share
      : ((1 - split.share) * others.filter((one) => one.version === version).length) / Math.max(1, others.length);
  return endpoints.map((endpoint) => ({ ...endpoint, share: shareOf(endpoint.version) }));
}

function withoutShares(candidates: readonly EndpointCandidate[]): readonly BalancerReplica[] {
  return candidates.flatMap(({ record, report, spec }) => {
    const standing = endpointState(record, report);
    if (standing === undefined || record.address === null) return [];
    const { id, version, offer, address } = record;
    const endpoint = {
      id,
      version,
      address,
      place: offer === null ? 'unknown' : locationName(offer),
      weight: spec === undefined ? 1 : replicaWeight(spec, offer),
    };
    return [{ ...endpoint, ...standing }];
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
  // Requests that it got before may still be in flight.
  if (state === 'SLEEPING') return draining(report);
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
