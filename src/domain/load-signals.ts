import type { EngineLoad } from './engine-metrics.ts';

/** What the autoscalers other than `request_rate` know about the load. */
export interface LoadSignals {
  /** Requests that arrived in each ten seconds before now, the latest first, ten minutes at most. Only observed times. */
  readonly recent: readonly number[];
  /** Requests in flight or queued: the mean over the last minute, and over the last six seconds. */
  readonly ongoing: { readonly minute: number; readonly moment: number };
  readonly inFlight: number;
  readonly queued: number;
  /** Of a service that reads the metrics of its engines. */
  readonly engines?: EngineLoad;
  readonly readyReplicas: number;
  /** Time from a launch to a ready replica, s. */
  readonly coldStartSeconds: number;
}
