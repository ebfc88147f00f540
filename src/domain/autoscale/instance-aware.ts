import type { ServiceLoad } from './load.ts';
import { requestRate } from './request-rate.ts';

/**
 * Replicas that the rate asks for when they are not alike: the fewest of those that live, in the order in which they would be kept, that take it
 * together; when all of them do not, as many more as take the rest. With equal targets this is `ceil(rate / target)`. SkyServe's instance-aware
 * autoscaler means the same, but counts dead replicas among those that live and does not take away the ones it reckoned without.
 */
export function wantedByCapacity({ fleet, ...load }: Pick<ServiceLoad, 'requestsInWindow' | 'fleet'>): number {
  const rate = requestRate(load);
  let taken = 0;
  for (const [index, qps] of fleet.living.entries()) {
    if (taken >= rate) return index;
    taken += qps;
  }
  return fleet.living.length + Math.ceil(Math.max(0, rate - taken) / fleet.toCome);
}
