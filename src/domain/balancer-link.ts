import { exitCodes } from '../shared/error-codes.ts';
import type { ReplicaAddress } from '../shared/replica-address.ts';
import type { LoadBalancingPolicy, ReplicaProtocol } from './task.ts';

/**
 * What the reconciler and the balancer say to each other: one JSON object per line over the balancer's Unix socket.
 * Several clients may be connected; each gets every report.
 */

/** With what a balancer ends when its port is taken. */
export const portBusyExitCode = exitCodes.conflict;

/** What the balancer process is started with (a JSON file, written by the daemon, mode 0600). */
export interface BalancerConfig {
  readonly service: string;
  readonly host: string;
  readonly port: number;
  /** Threads that serve the endpoint, at least 1; they share its port and their counts. */
  readonly threads: number;
  readonly policy: LoadBalancingPolicy;
  readonly controlSocket: string;
  readonly lastReplicasFile: string;
  readonly accessLog: string;
  /** Prometheus metrics over HTTP on this Unix socket, and on this port of 127.0.0.1 when it is not null. */
  readonly metricsSocket: string;
  readonly metricsPort: number | null;
  /** PEM files; with them the endpoint speaks TLS alone, and HTTP/2 to clients that ask for it. */
  readonly tls: { readonly keyFile: string; readonly certFile: string } | null;
  /** What the replicas speak. `auto`: HTTP/1.1, or HTTP/2 without TLS for gRPC requests when the replica is found to speak it. */
  readonly protocol: ReplicaProtocol;
  /** Addresses or ranges (`10.0.0.0/8`) of proxies before us, whose `X-Forwarded-*` fields are believed. */
  readonly trustedProxies: readonly string[];
  /** Open connections of clients; null: what the limit of open files allows. */
  readonly maxConnections: number | null;
  /** How much of a request's head is read before it is refused; see `LoadBalancerSpec`. */
  readonly maxRequestLineBytes: number;
  readonly maxHeaderBytes: number;
  readonly maxHeaderCount: number;
  /** See `LoadBalancerSpec`. */
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly maxBodyBytes: number | null;
  readonly retryUnsafe: boolean;
  readonly exposeReplica: boolean;
  /** How long an idle connection of a client is kept. */
  readonly keepAliveTimeoutMs: number;
  /** Requests that meet no replica are held until one is there. */
  readonly queue: RequestQueueLimits;
  /** Sent as `Retry-After` with 503, s. */
  readonly retryAfterSeconds: number;
}

/** How much may wait for a replica; what is beyond it is answered 503 at once. */
export interface RequestQueueLimits {
  readonly maxRequests: number;
  /** Of the held bodies together. */
  readonly maxBytes: number;
  /** Of one request in all. */
  readonly timeoutMs: number;
  /** Whether requests wait though the service has had no replica for long, because their arrival makes it start one. */
  readonly fromZero: boolean;
}

/** One replica as the balancer knows it. `draining`: finishes what it has and gets nothing new. */
export interface BalancerReplica {
  readonly id: number;
  readonly address: ReplicaAddress;
  /** Where it runs, such as `local` or `aws/us-east-2`; for the log. */
  readonly place: string;
  /** Relative capacity, > 0; 1 unless the policy weighs. */
  readonly weight: number;
  readonly state: 'serving' | 'draining';
}

/** From the reconciler. The whole set each time, so that a lost message does no harm; lower revisions than the last are ignored within an epoch. */
export interface ReplicasCommand {
  readonly type: 'replicas';
  /** Changes with each start of a reconciler. */
  readonly epoch: string;
  readonly revision: number;
  readonly replicas: readonly BalancerReplica[];
}

/**
 * From the daemon: the process is to start its successor, with the code and the config file that are there now, and to give it its listening
 * sockets. The successor takes over the path of the control socket and says hello there; then the process closes its own control connections,
 * accepts nothing more, lets what is under way end, and ends. When no successor comes up the process goes on as if it had not been asked.
 */
export interface HandOverCommand {
  readonly type: 'hand-over';
}

/**
 * From a process that has handed over and still finishes what it had: at once when it has connected to its successor, and each 250 ms when anything
 * changed. It is sent each set of replicas as a `ReplicasCommand`, the newest first of all, and follows it.
 */
export interface RemainingCommand {
  readonly type: 'remaining';
  /** Requests that arrived there, on connections that were open, since it said so last; and errors among them. */
  readonly requests: number;
  readonly errors: number;
  readonly inFlight: Readonly<Record<string, number>>;
  /** The set that it has in force; null while it has none of a reconciler. */
  readonly applied: { readonly epoch: string; readonly revision: number } | null;
}

/** What the control socket takes. */
export type BalancerCommand = ReplicasCommand | HandOverCommand | RemainingCommand;

/** From the balancer. */
export type BalancerReport =
  | {
      readonly type: 'hello';
      readonly pid: number;
      readonly port: number;
      readonly startedAt: number;
      /** Of the code that the process runs (`shared/code-version.ts`); absent from processes older than this field. */
      readonly version?: string;
      /** Fingerprint of the text of the config file it was started with (`shared/fingerprint.ts`). */
      readonly config?: string;
    }
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
      /** Requests that wait for a replica. */
      readonly queued: number;
    }
  /** A replica refused, reset or hung: worth a probe at once. At most one a second per replica. */
  | { readonly type: 'suspect'; readonly replicaId: number; readonly reason: 'refused' | 'reset' | 'timeout' };
