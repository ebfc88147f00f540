/** What the autoscalers other than `request_rate` know about the load. */
export interface LoadSignals {
  /** Requests that arrived in each ten seconds before now, the latest first, ten minutes at most. Only observed times. */
  readonly recent: readonly number[];
  /** Requests in flight or queued: the mean over the last minute, and over the last six seconds. */
  readonly ongoing: { readonly minute: number; readonly moment: number };
  readonly inFlight: number;
  readonly queued: number;
  readonly readyReplicas: number;
  /** Time from a launch to a ready replica, s. */
  readonly coldStartSeconds: number;
}
