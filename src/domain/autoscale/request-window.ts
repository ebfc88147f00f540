import { rateWindowMs } from './request-rate.ts';

/** Requests that arrived together, as the balancer reported them. */
export interface ArrivalCount {
  /** When it was reported, ms. */
  readonly at: number;
  readonly count: number;
}

/** The arrivals of the last minute. */
export type RequestWindow = readonly ArrivalCount[];

/** Adds what arrived and forgets what is older than the window. */
export function addArrivals(window: RequestWindow, now: number, count: number): RequestWindow {
  const recent = window.filter((entry) => entry.at > now - rateWindowMs);
  return count > 0 ? [...recent, { at: now, count }] : recent;
}

/** Requests within the window that ends at `now`. */
export function requestsInWindow(window: RequestWindow, now: number): number {
  return window.reduce((sum, entry) => (entry.at > now - rateWindowMs && entry.at <= now ? sum + entry.count : sum), 0);
}
