import type { BalancerConfig } from './balancer-link.ts';

/**
 * Balancers on machines of their own, so that an endpoint outlives the controller's: a balancer host runs one balancer for each service and is told
 * by the leading controller which. This is what they say to each other, one JSON object per line, over TLS with the token as the shared key.
 *
 * A balancer host (`controller/balancer-host/main`) reads from its environment: SVC_HOME (a folder of its own), SVC_BALANCER_TOKEN_FILE,
 * SVC_BALANCER_PORT (default 30000), SVC_BALANCER_ADDRESS (where it and its endpoints listen, default 0.0.0.0) and SVC_BALANCER_PEERS: `kubernetes` when
 * others of its kind are pods of its namespace with the label `svc-role=balancer`, which it then watches over, as they do over it.
 *
 * On the port for commands it also answers `GET /healthz` (it lives and is not stuck: for a liveness probe) and `GET /readyz` (it serves all that it
 * was told to serve).
 */

/** Where a balancer host takes commands, unless it is told otherwise. */
export const balancerHostPort = 30_000;

/** Ports of endpoints that lead to balancer hosts: the Service in front of them names each. */
export const balancerHostEndpoints = { first: 30_001, last: 30_020 } as const;

/** Labels of the pods of balancer hosts. A pod gets requests while it has `serving`; it puts that on itself, and others take it off when it is silent. */
export const balancerPodLabels = { role: { 'svc-role': 'balancer' }, serving: 'svc-serving' } as const;

/** What a controller is told of its balancer hosts. */
export interface BalancerHosts {
  /** Holds the token that they share, mode 0600. */
  readonly tokenFile: string;
  readonly port: number;
  /** They are the pods of this namespace with the label `svc-role=balancer`. */
  readonly namespace?: string;
  /** They are at these names or addresses. */
  readonly members?: readonly string[];
}

/** One balancer host as others find it. */
export interface BalancerHostMember {
  /** Unique among those that live: of its pod, or its address. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

/** A service that a balancer host is to serve. */
export interface HostedService {
  readonly key: string;
  /** Paths in it are for the host to choose; null threads as well. null: as it serves it already, when it does. */
  readonly config: (Omit<BalancerConfig, 'threads'> & { readonly threads: number | null }) | null;
  /** Contents of the PEM files, where the endpoint speaks TLS. */
  readonly tls: { readonly key: string; readonly cert: string } | null;
}

/** How a hosted service does: `port-busy` when another program has its port, `failing` when its process keeps dying. */
export type HostedState = 'starting' | 'listening' | 'port-busy' | 'failing';

/** First line of whoever connects. A controller of an older term than one that was heard before is refused. */
export interface HostGreeting {
  readonly type: 'greeting';
  readonly term: number;
}

/** Second line: what the connection is for. */
export type HostCommand =
  /** The whole set, and again whenever it changes; answered by `HostReport`s from then on. */
  | { readonly type: 'services'; readonly services: readonly HostedService[] }
  /** After the answer `ok` the connection leads to the control socket of that service's balancer; see `balancer-link.ts`. */
  | { readonly type: 'attach'; readonly key: string }
  /** After the answer the text follows, and the end. */
  | { readonly type: 'metrics'; readonly key: string }
  | { readonly type: 'log'; readonly key: string; readonly tail: number | null; readonly follow: boolean };

/** From a balancer host. */
export type HostReport =
  | { readonly type: 'hello'; readonly pid: number; readonly version: string }
  | { readonly type: 'ok' }
  | { readonly type: 'refused'; readonly reason: string }
  /** How the services do, by key: whenever that changes, and each second. */
  | { readonly type: 'state'; readonly services: Readonly<Record<string, HostedState>> };
