import type { BalancerConfig } from '../balancer-link.ts';

/**
 * The protocol between the leading controller and its edge proxies: one JSON object per line, over TLS with the token
 * as the shared key. Edge proxies run on machines of their own, so an endpoint survives the loss of the controller's
 * machine. An edge proxy runs one balancer for each assigned service.
 *
 * It (`controller/edge-proxy/main`) reads these environment variables:
 * - SVC_HOME: a folder of its own.
 * - SVC_BALANCER_TOKEN_FILE: the file with the token.
 * - SVC_BALANCER_PORT: default 30000.
 * - SVC_BALANCER_ADDRESS: where it and its endpoints listen, default 0.0.0.0.
 * - SVC_BALANCER_LABELS_FILE, in a pod: its labels as written by Kubernetes' downward API.
 *
 * It has no rights in its Kubernetes cluster: `controller/edge-proxy/health-checker` checks all edge proxies of a
 * namespace and may change their labels. The command port also answers `GET /healthz` (liveness: the process is not
 * stuck) and `GET /readyz` (it serves all assigned services).
 */

/** Default port on which an edge proxy accepts commands. */
export const edgeProxyPort = 30_000;

/** Ports of the endpoints on edge proxies. The Service in front of them lists each port. */
export const edgeProxyEndpoints = { first: 30_001, last: 30_020 } as const;

/**
 * Labels of the pods of edge proxies. A pod gets requests while `serving` is true, whatever readiness Kubernetes
 * reports. Health checkers set `serving` when the pod can serve. `alone` is true while no edge proxy serves.
 */
export const edgeProxyPodLabels = { role: { 'svc-role': 'balancer' }, serving: 'svc-serving', alone: 'svc-alone' } as const;

/** How a controller finds its edge proxies. */
export interface EdgeProxies {
  /** Holds the token that all edge proxies share, mode 0600. */
  readonly tokenFile: string;
  readonly port: number;
  /** The edge proxies are the pods of this namespace with the label `svc-role=balancer`. */
  readonly namespace?: string;
  /** Names or addresses of the edge proxies. */
  readonly members?: readonly string[];
}

/** One edge proxy as the controller and the health checkers find it. */
export interface EdgeProxyMember {
  /** Name of its pod, or its address. Unique among living edge proxies. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

/** A service that the leader assigns to an edge proxy. */
export interface ProxiedService {
  readonly key: string;
  /** The edge proxy sets its paths, and `threads` if null. null: keep the configuration that it already serves. */
  readonly config: (Omit<BalancerConfig, 'threads'> & { readonly threads: number | null }) | null;
  /** Contents of the PEM files, when the endpoint uses TLS. */
  readonly tls: { readonly key: string; readonly cert: string } | null;
}

/** `port-busy`: another program has its port. `failing`: its process keeps dying. */
export type ProxiedServiceState = 'starting' | 'listening' | 'port-busy' | 'failing';

/** First line of a client. The edge proxy refuses a lower term than the highest it has seen. */
export interface EdgeProxyGreeting {
  readonly type: 'greeting';
  readonly term: number;
}

/** Second line: the purpose of the connection. */
export type EdgeProxyCommand =
  /** All services, again on each change. The edge proxy then answers with `EdgeProxyReport`s. */
  | { readonly type: 'services'; readonly services: readonly ProxiedService[] }
  /** After the answer `ok`, this is the control socket of the service's balancer; see `balancer-link.ts`. */
  | { readonly type: 'attach'; readonly key: string }
  /** After the answer, the edge proxy sends the metrics as text and closes the connection. */
  | { readonly type: 'metrics'; readonly key: string }
  | { readonly type: 'log'; readonly key: string; readonly tail: number | null; readonly follow: boolean };

/** Sent by an edge proxy. */
export type EdgeProxyReport =
  | { readonly type: 'hello'; readonly pid: number; readonly version: string }
  | { readonly type: 'ok' }
  | { readonly type: 'refused'; readonly reason: string }
  /** States of the services by key. Sent on each change and once per second. */
  | { readonly type: 'state'; readonly services: Readonly<Record<string, ProxiedServiceState>> };
