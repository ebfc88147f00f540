import { exitCodes } from '../shared/error-codes.ts';
import type { ReplicaAddress } from '../shared/replica-address.ts';
import type { ExpectedReplica } from './expected-replica.ts';
import type { PassedSettings } from './load-balancer.ts';
import type { Outcomes } from './outcomes.ts';
import type { LoadBalancingPolicy, ReplicaProtocol, SessionKey } from './task.ts';
import type { TlsRules } from './tls-rules.ts';

/** Protocol of reconciler and balancer: a JSON object per line over a Unix socket. Every client gets every report. */

/** Exit code of the balancer when its port is taken. */
export const portBusyExitCode = exitCodes.conflict;

/** Start of the balancer's message that it keeps its TLS pair, because the pair in the files cannot be served. */
export const tlsRefused = 'The new TLS files are not in force, the endpoint goes on with the old pair:';

/** The balancer's JSON file, mode 0600, written by the daemon. `loadBalancerSettings` documents the other settings. */
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
  /** Unix socket for Prometheus metrics over HTTP. `metricsPort` of 127.0.0.1 serves them too unless it is null. */
  readonly metricsSocket: string;
  /**
   * PEM files. With them the endpoint accepts TLS only, and HTTP/2 from clients that negotiate it. With
   * `clientCaFile`, clients need a certificate of an authority in that file.
   */
  readonly tls: { readonly keyFile: string; readonly certFile: string; readonly clientCaFile?: string } | null;
  /** Without effect unless `tls` is set. */
  readonly tlsRules: TlsRules;
  /** Protocol of the replicas. `auto`: HTTP/1.1; for gRPC requests HTTP/2 without TLS when a replica supports it. */
  readonly protocol: ReplicaProtocol;
  readonly queue: RequestQueueLimits;
  readonly retryAfterSeconds: number;
  /** Requests with the same value there keep their version while the endpoint set has shares. */
  readonly session?: SessionKey;
}

/** Limits of the queue of requests that wait for a replica. The balancer answers requests beyond them with 503. */
export interface RequestQueueLimits {
  readonly maxRequests: number;
  /** Total bytes of the queued bodies. */
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** Queue requests even after a long time without replicas: an arriving request starts one. */
  readonly fromZero: boolean;
}

/** Why a draining replica may not finish its requests. `hung`: it answers nothing. `gone`: program or machine ended. */
export type LostReplica = 'hung' | 'gone';

/** One replica as the balancer knows it. `draining`: no new requests; those under way finish unless it is lost. */
export interface BalancerReplica {
  readonly id: number;
  readonly address: ReplicaAddress;
  /** Such as `local` or `aws/us-east-2`; for the log. */
  readonly place: string;
  /** Relative capacity, > 0; 1 unless the file has a target per accelerator. Not a share of the traffic. */
  readonly weight: number;
  readonly state: 'serving' | 'draining';
  /** Only while draining: requests whose response has not begun go to other replicas or fail. */
  readonly lost?: LostReplica;
  /** Of the service's file, at least 1. Older reconcilers omit it. */
  readonly version?: number;
  /**
   * Share of the requests for the replica's version, 0 to 1; equal for all replicas of a version. When no replica has
   * one, versions do not matter. When some have, the versions of the others have share 0.
   */
  readonly share?: number;
}

/** The reconciler's whole endpoint set: a lost message does no harm. Within an epoch, lower revisions are ignored. */
export interface ReplicasCommand {
  readonly type: 'replicas';
  /** Changes with each start of a reconciler. */
  readonly epoch: string;
  readonly revision: number;
  readonly replicas: readonly BalancerReplica[];
  /** While no replica is ready: the one to come, for the texts to waiting clients. Older reconcilers omit it. */
  readonly expected?: ExpectedReplica;
}

/**
 * From the daemon: start a successor with the code and the config file now on disk, and pass it the listening sockets.
 * The successor takes over the path of the control socket and sends hello there. The old process then closes its
 * control connections, accepts no connections, finishes the requests under way, and exits. If no successor starts, the
 * old process continues unchanged.
 */
export interface HandOverCommand {
  readonly type: 'hand-over';
}

/**
 * From a process that has handed over and finishes its requests: at once, then every 250 ms if anything changed. The
 * successor sends it each endpoint set as a `ReplicasCommand`, starting with the newest.
 */
export interface RemainingCommand {
  readonly type: 'remaining';
  /** Requests that arrived on its open connections since its last message, and the errors among them. */
  readonly requests: number;
  readonly errors: number;
  readonly inFlight: Readonly<Record<string, number>>;
  /** Increments since its last message. */
  readonly outcomes?: Outcomes;
  /** The endpoint set in force; null while it has none from a reconciler. */
  readonly applied: { readonly epoch: string; readonly revision: number } | null;
}

/** Commands that the control socket accepts. */
export type BalancerCommand = ReplicasCommand | HandOverCommand | RemainingCommand;

/** The last requests at a replica, none of which got a complete response. */
export interface BrokenRequests {
  /** Requests without a first byte in time. */
  readonly hung: number;
  /** Requests whose connection or response broke off. */
  readonly cutOff: number;
  /** From the first to the last of them. */
  readonly seconds: number;
  /** Since the first of them. */
  readonly ageSeconds: number;
}

/** By replica id. */
export type BrokenReplicas = Readonly<Record<string, BrokenRequests>>;

/** Sent by the balancer. */
export type BalancerReport =
  | {
      readonly type: 'hello';
      readonly pid: number;
      readonly port: number;
      readonly startedAt: number;
      /** `shared/version.ts` of the running code. Older processes omit it. */
      readonly version?: string;
      /** Fingerprint of the config file with which the process started (`shared/hex.ts`). */
      readonly config?: string;
      /** As in the report `standby`; absent while the process has none. Older processes omit it. */
      readonly standby?: number;
      /** Why the newest TLS files of the endpoint are not in force; absent when they are. */
      readonly tlsProblem?: string;
    }
  /** The process with this pid becomes the next balancer if this one is killed. It replaces an earlier standby. */
  | { readonly type: 'standby'; readonly pid: number }
  /** In force: no new request goes to a replica that does not serve in this set. */
  | { readonly type: 'applied'; readonly epoch: string; readonly revision: number }
  /** Sent every 250 ms if anything changed, else every second. */
  | {
      readonly type: 'stats';
      /** Wall time, ms. */
      readonly at: number;
      /** Since this process started, whatever the result. */
      readonly requestsTotal: number;
      readonly errorsTotal: number;
      readonly inFlight: Readonly<Record<string, number>>;
      readonly queued: number;
      /**
       * While the endpoint set has several versions, and for the last changes after that. A replica that left the set
       * is absent once its counts no longer change: they remain valid.
       */
      readonly outcomes?: Outcomes;
      /** By replica id: replicas whose last requests all hung or broke off, at least five. Older balancers omit it. */
      readonly broken?: BrokenReplicas;
    }
  /** The TLS files changed. `problem`: why the old pair stays in force; null when the new one is. */
  | { readonly type: 'tls'; readonly problem: string | null }
  /** A replica should be probed at once. The balancer sends at most one per second and replica. */
  | { readonly type: 'suspect'; readonly replicaId: number; readonly reason: SuspectReason };

/**
 * Why to probe a replica. `timeout`: a request waits for its first byte, and the replica was silent for a second or was
 * passed over for that. `silent`: also silent for four times its usual response time; repeated every second.
 */
export type SuspectReason = 'refused' | 'reset' | 'timeout' | 'silent';
