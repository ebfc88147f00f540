import type { BalancerConfig, BalancerReport } from '../../domain/balancer-link.ts';
import type { AddressRange } from '../../shared/address-range.ts';
import type { Clock } from '../../shared/clock.ts';
import type { AccessRecord } from '../access-log/access-record.ts';
import type { Deadlines } from '../transport/deadlines.ts';
import type { HeadLimits } from '../http1/limits.ts';
import type { ThreadMetrics } from '../metrics/thread-metrics.ts';
import type { PausedClients } from '../transport/paused-clients.ts';
import type { ReplicaSet } from '../replicas/replica-set.ts';
import type { RetryBudget } from './retry-budget.ts';
import type { WaitingRoom } from './waiting-room.ts';

/** Why a replica deserves a probe at once. */
export type SuspectReason = Extract<BalancerReport, { type: 'suspect' }>['reason'];

/** What all requests of a thread share. */
export interface BalancerContext {
  readonly config: BalancerConfig;
  /** As configured: how much of a request's head is read. */
  readonly headLimits: HeadLimits;
  /** As configured: clients at these addresses are proxies whose `X-Forwarded-*` fields are believed. */
  readonly trustedProxies: readonly AddressRange[];
  readonly clock: Clock;
  readonly deadlines: Deadlines;
  readonly replicas: ReplicaSet;
  readonly retryBudget: RetryBudget;
  readonly waitingRoom: WaitingRoom;
  readonly pausedClients: PausedClients;
  readonly counters: RequestCounters;
  readonly metrics: ThreadMetrics;
  readonly newRequestId: () => string;
  /** A request ended. */
  readonly log: (record: AccessRecord) => void;
  readonly suspect: (replicaId: number, reason: SuspectReason) => void;
  /** An unexpected error in the work on one connection, which was closed for it. */
  readonly crashed: (error: unknown) => void;
}

/** Counted since the thread started. */
export interface RequestCounters {
  /** Requests whose head could be read, whatever became of them. */
  requests: number;
  /** Those that the balancer answered with 5xx itself, and those whose response a replica broke off. */
  errors: number;
  /** The process is ending: connections are closed after their current response. */
  isDraining: boolean;
}
