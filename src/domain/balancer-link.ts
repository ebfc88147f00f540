import { exitCodes } from '../shared/error-codes.ts';
import type { ReplicaAddress } from '../shared/replica-address.ts';
import type { PassedSettings } from './load-balancer.ts';
import type { LoadBalancingPolicy, ReplicaProtocol } from './task.ts';

/**
 * The protocol between reconciler and balancer: one JSON object per line over the balancer's Unix socket.
 * Several clients may be connected. Each gets every report.
 */

/** Exit code of the balancer when its port is taken. */
export const portBusyExitCode = exitCodes.conflict;

/**
 * Start of the balancer's message that it keeps its TLS key and certificate, because the pair in the files cannot be
 * served.
 */
export const tlsRefused = 'The new TLS files are not in force, the endpoint goes on with the old pair:';

/**
 * Configuration of the balancer process: a JSON file that the daemon writes, mode 0600. `loadBalancerSettings` documents
 * the settings that it extends.
 */
export interface BalancerConfig extends PassedSettings {
  readonly service: string;
  readonly host: string;
  readonly port: number;
  /** Threads that serve the endpoint, at least 1. They share its port and their counters. */
  readonly threads: number;
  readonly policy: LoadBalancingPolicy;
  readonly controlSocket: string;
  readonly lastReplicasFile: string;
  readonly accessLog: string;
  /**
   * The balancer serves Prometheus metrics over HTTP on this Unix socket, and on `metricsPort` of 127.0.0.1 unless that
   * is null.
   */
  readonly metricsSocket: string;
  /** PEM files. With them the endpoint accepts TLS only, and HTTP/2 from clients that negotiate it. */
  readonly tls: { readonly keyFile: string; readonly certFile: string } | null;
  /**
   * Protocol of the replicas. `auto`: HTTP/1.1, or HTTP/2 without TLS for gRPC requests when a replica turns out to
   * support it.
   */
  readonly protocol: ReplicaProtocol;
  /** Limits of the request queue: requests wait in it while there is no replica. */
  readonly queue: RequestQueueLimits;
  /** Value of `Retry-After` sent with 503, s. */
  readonly retryAfterSeconds: number;
}

/** Limits of the request queue. The balancer answers requests beyond them with 503 at once. */
export interface RequestQueueLimits {
  readonly maxRequests: number;
  /** Total bytes of the queued bodies. */
  readonly maxBytes: number;
  /** Total time that one request may be queued. */
  readonly timeoutMs: number;
  /**
   * Whether requests are queued although the service has had no replica for long. True when an arriving request makes
   * the service start a replica.
   */
  readonly fromZero: boolean;
}

/**
 * Why a draining replica may not finish its requests. `hung`: it answers neither probes nor requests. `gone`: its
 * program has ended, or its machine is gone.
 */
export type LostReplica = 'hung' | 'gone';

/**
 * One replica as the balancer knows it. `draining`: it gets no new requests and finishes those under way, unless it is
 * lost.
 */
export interface BalancerReplica {
  readonly id: number;
  readonly address: ReplicaAddress;
  /** Its location, such as `local` or `aws/us-east-2`; for the log. */
  readonly place: string;
  /** Relative capacity, > 0; 1 unless the policy uses weights. */
  readonly weight: number;
  readonly state: 'serving' | 'draining';
  /**
   * Set only while draining: the balancer sends requests that the replica has not begun to answer to other replicas, or
   * fails them.
   */
  readonly lost?: LostReplica;
}

/**
 * Sent by the reconciler. It holds the whole endpoint set, so a lost message does no harm. Within an epoch the balancer
 * ignores revisions lower than the last.
 */
export interface ReplicasCommand {
  readonly type: 'replicas';
  /** Changes with each start of a reconciler. */
  readonly epoch: string;
  readonly revision: number;
  readonly replicas: readonly BalancerReplica[];
}

/**
 * Sent by the daemon: the process starts its successor and passes it the listening sockets. The successor runs the code
 * and the config file that are on disk now.
 * The successor takes over the path of the control socket and sends hello there. The old process then closes its
 * control connections, accepts no connections, finishes the requests under way, and exits.
 * If no successor starts, the old process continues as if the command had not come.
 */
export interface HandOverCommand {
  readonly type: 'hand-over';
}

/**
 * Sent by a process that has handed over and still finishes its requests. It sends one as soon as it has connected to
 * its successor, then every 250 ms if anything changed.
 * The successor sends it each endpoint set as a `ReplicasCommand`, starting with the newest. The old process applies
 * them.
 */
export interface RemainingCommand {
  readonly type: 'remaining';
  /** Requests that arrived on its open connections since its last message, and the errors among them. */
  readonly requests: number;
  readonly errors: number;
  readonly inFlight: Readonly<Record<string, number>>;
  /** The endpoint set in force; null while it has none from a reconciler. */
  readonly applied: { readonly epoch: string; readonly revision: number } | null;
}

/** Commands that the control socket accepts. */
export type BalancerCommand = ReplicasCommand | HandOverCommand | RemainingCommand;

/** Sent by the balancer. */
export type BalancerReport =
  | {
      readonly type: 'hello';
      readonly pid: number;
      readonly port: number;
      readonly startedAt: number;
      /**
       * Version of the code that the process runs (`shared/version.ts`). Processes older than this field omit it.
       */
      readonly version?: string;
      /** Fingerprint of the config file with which the process started (`shared/hex.ts`). */
      readonly config?: string;
      /** Why the newest TLS files of the endpoint are not in force; absent when they are. */
      readonly tlsProblem?: string;
    }
  /**
   * The endpoint set of that revision is in force: no new request goes to a replica that does not serve in this set.
   */
  | { readonly type: 'applied'; readonly epoch: string; readonly revision: number }
  /** Sent every 250 ms if anything changed, else every second. */
  | {
      readonly type: 'stats';
      /** Wall time, ms. */
      readonly at: number;
      /** Requests that arrived since this process started, whatever their result. */
      readonly requestsTotal: number;
      readonly errorsTotal: number;
      readonly inFlight: Readonly<Record<string, number>>;
      /** Requests in the request queue. */
      readonly queued: number;
    }
  /**
   * The TLS files of the endpoint changed. `problem`: why the old pair stays in force; null when the new pair is in
   * force.
   */
  | { readonly type: 'tls'; readonly problem: string | null }
  /** A replica should be probed at once. The balancer sends at most one per second and replica. */
  | { readonly type: 'suspect'; readonly replicaId: number; readonly reason: SuspectReason };

/**
 * Why a replica should be probed. `timeout`: a request waits for its first byte, and the replica has been silent for a
 * second or the balancer has passed it over for that.
 * `silent`: the replica has also been silent for four times its usual response time. The balancer repeats this every
 * second while it lasts.
 */
export type SuspectReason = 'refused' | 'reset' | 'timeout' | 'silent';
