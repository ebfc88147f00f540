import type { ServiceLoad } from './load.ts';

/** The span over which requests are counted, ms (SkyServe's constant). */
export const rateWindowMs = 60_000;

/** Requests per second over the window. */
export function requestRate({ requestsInWindow }: Pick<ServiceLoad, 'requestsInWindow'>): number {
  return requestsInWindow / (rateWindowMs / 1_000);
}

/** Replicas that the rate asks for when each takes the same: `ceil(rate / target)`, as SkyServe's request-rate autoscaler has it. */
export function wantedByRate(targetQps: number, load: Pick<ServiceLoad, 'requestsInWindow'>): number {
  return Math.ceil(requestRate(load) / targetQps);
}
