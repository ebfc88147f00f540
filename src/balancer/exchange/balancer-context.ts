import type { BalancerConfig, SuspectReason } from '../../domain/balancer-link.ts';
import type { AddressRange } from '../../shared/address-range.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Admission } from '../client/admission.ts';
import type { FileBudget } from '../board/file-budget.ts';
import type { AccessRecord } from '../access-log/access-record.ts';
import type { Deadlines } from '../transport/deadlines.ts';
import type { ForwardedClient } from '../http1/forward-request.ts';
import type { HeadLimits } from '../http1/limits.ts';
import type { ThreadMetrics } from '../metrics/thread-metrics.ts';
import type { PausedClients } from '../transport/paused-clients.ts';
import type { ReplicaSet } from '../replicas/replica-set.ts';
import type { RetryBudget } from './retry-budget.ts';
import type { RequestQueue } from './request-queue.ts';

/** What all requests of one thread share. */
export interface BalancerContext {
  readonly config: BalancerConfig;
  /** From the config: the limits of a request's head. */
  readonly headLimits: HeadLimits;
  /** From the config: addresses of proxies whose `X-Forwarded-*` fields the balancer trusts. */
  readonly trustedProxies: readonly AddressRange[];
  readonly admission: Admission;
  readonly clock: Clock;
  readonly deadlines: Deadlines;
  readonly files: FileBudget;
  readonly replicas: ReplicaSet;
  readonly retryBudget: RetryBudget;
  readonly requestQueue: RequestQueue;
  readonly pausedClients: PausedClients;
  readonly counters: RequestCounters;
  readonly metrics: ThreadMetrics;
  readonly newRequestId: () => string;
  /** The only sink of ended requests: for the metrics and the access log. */
  readonly requestEnded: (record: AccessRecord) => void;
  /** Logs a connection that is closed before a request was read. `fault`: the TLS error. */
  readonly connectionRefused: (client: ForwardedClient, code: RefusalCode, fault?: string) => void;
  /** Reports to the reconciler that a replica may be lost, so that the reconciler probes it. */
  readonly suspect: (replicaId: number, reason: SuspectReason) => void;
  /** Logs an unexpected error in the work for one connection. The other connections continue. */
  readonly crashed: (error: unknown) => void;
}

/** Why a connection ended before a request. */
export type RefusalCode = 'address_not_allowed' | 'bad_proxy_header' | 'tls_required' | 'tls_handshake_failed';

/** Counts since the thread started. */
export interface RequestCounters {
  /** Requests with a valid head, whatever their outcome. */
  requests: number;
  /** Requests that the balancer answered with 5xx itself, and those whose response a replica cut short. */
  errors: number;
  /** The process ends: each client connection closes after its current response. */
  isDraining: boolean;
}
