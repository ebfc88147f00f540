import type { ReplicaAddress } from '../shared/replica-address.ts';
import type { LoadBalancingPolicy } from './task.ts';

/**
 * What the reconciler and the balancer say to each other: one JSON object per line over the balancer's Unix socket.
 * Several clients may be connected; each gets every report.
 */

/** What the balancer process is started with (a JSON file, written by the daemon, mode 0600). */
export interface BalancerConfig {
  readonly service: string;
  readonly host: string;
  readonly port: number;
  readonly policy: LoadBalancingPolicy;
  readonly controlSocket: string;
  readonly lastReplicasFile: string;
  readonly accessLog: string;
  /** See `LoadBalancerSpec`. */
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly maxBodyBytes: number | null;
  readonly retryUnsafe: boolean;
  readonly exposeReplica: boolean;
  /** How long a request that meets no replica waits for one when the service had some a moment ago. */
  readonly replicaWaitMs: number;
  /** Sent as `Retry-After` with 503, s. */
  readonly retryAfterSeconds: number;
}

/** One replica as the balancer knows it. `draining`: finishes what it has and gets nothing new. */
export interface BalancerReplica {
  readonly id: number;
  readonly address: ReplicaAddress;
  /** Relative capacity, > 0; 1 unless the policy weighs. */
  readonly weight: number;
  readonly state: 'serving' | 'draining';
}

/** From the reconciler. The whole set each time, so that a lost message does no harm; lower revisions than the last are ignored within an epoch. */
export type BalancerCommand = {
  readonly type: 'replicas';
  /** Changes with each start of a reconciler. */
  readonly epoch: string;
  readonly revision: number;
  readonly replicas: readonly BalancerReplica[];
};

/** From the balancer. */
export type BalancerReport =
  | { readonly type: 'hello'; readonly pid: number; readonly port: number; readonly startedAt: number }
  /** The set of that revision is in force: no request that begins from now on goes to a replica that is not serving in it. */
  | { readonly type: 'applied'; readonly epoch: string; readonly revision: number }
  /** Each 250 ms when anything changed, else each second. */
  | {
      readonly type: 'stats';
      /** Wall time, ms. */
      readonly at: number;
      /** Requests that arrived since this process started, whatever became of them. */
      readonly requestsTotal: number;
      readonly errorsTotal: number;
      readonly inFlight: Readonly<Record<string, number>>;
    }
  /** A replica refused, reset or hung: worth a probe at once. At most one a second per replica. */
  | { readonly type: 'suspect'; readonly replicaId: number; readonly reason: 'refused' | 'reset' | 'timeout' };
