import { createServer } from 'node:net';
import { getuid } from 'node:process';
import { edgeProxyEndpoints } from '../../domain/edge-proxy/edge-proxy.ts';
import type { LoadBalancerSpec } from '../../domain/load-balancer.ts';
import { numberOf } from '../../shared/hex.ts';
import { hasErrno, SvcError } from '../../shared/errors.ts';
import { shellQuote } from '../../remote/shell-quote.ts';
import { describeClaim, type PortClaim } from './port-claims.ts';

/** First port assigned to an endpoint when none is requested. Users of similar tools know it. */
export const firstEndpointPort = 30_001;
/** Last port assigned to an endpoint. The kernel assigns the ports above it to outgoing connections. */
export const lastEndpointPort = 32_767;

/** First port that a home tries. Homes start at different numbers, which makes conflicts rare. */
export function firstPortOf(home: string): number {
  const range = lastEndpointPort - firstEndpointPort + 1;
  return firstEndpointPort + numberOf(home, range);
}

/** Whether a listener can be opened on this port now. */
export async function isPortFree(host: string, port: number): Promise<boolean> {
  const server = createServer();
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  server.once('error', (error) => (hasErrno(error, 'EADDRINUSE', 'EACCES') ? resolve(false) : reject(error)));
  server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  return promise;
}

/** A port that a balancer serves beside its endpoint. */
interface SidePort {
  /** Its field below `load_balancer`. */
  readonly field: string;
  readonly host: string;
  readonly port: number;
}

/** The ports that a service asks for beside its endpoint. `host`: of the endpoint. */
export function sidePortsOf(host: string, { metricsPort, httpRedirectPort }: LoadBalancerSpec): readonly SidePort[] {
  return [
    ...(metricsPort === undefined ? [] : [{ field: 'metrics_port', host: '127.0.0.1', port: metricsPort }]),
    ...(httpRedirectPort === undefined ? [] : [{ field: 'http_redirect_port', host, port: httpRedirectPort }]),
  ];
}

/** Throws SVC_PORT_BUSY when such a port is not available. `taken`: endpoints of services of all homes. */
export async function checkSidePort({ field, host, port }: SidePort, taken: ReadonlySet<number>): Promise<void> {
  if (!taken.has(port) && (await isPortFree(host, port))) return;
  const instead = field === 'metrics_port' ? ': svc serve metrics NAME needs none' : '';
  throw new SvcError(
    'SVC_PORT_BUSY',
    `Port ${port} on ${host}, asked for by load_balancer.${field}, is in use, or not allowed for this user.`,
    {
      hint: `Give load_balancer.${field} another number, or leave it out${instead}.`,
    },
  );
}

/**
 * Chooses a port for endpoints on edge proxies, behind a Service with exactly these ports. Only the edge proxies find
 * out whether the port is free there, when they listen. Throws SVC_PORT_BUSY.
 */
export function chooseEdgeProxyPort(requested: number | undefined, taken: ReadonlySet<number>): number {
  const { first, last } = edgeProxyEndpoints;
  if (requested !== undefined) {
    if (taken.has(requested)) throw new SvcError('SVC_PORT_BUSY', `Port ${requested} is the endpoint of another service.`);
    if (requested >= first && requested <= last) return requested;
    throw new SvcError(
      'SVC_PORT_BUSY',
      `Port ${requested} does not lead to the balancers of this controller: ports ${first} to ${last} do.`,
      {
        hint: `Choose a port from ${first} to ${last}, or leave it out to get a free one.`,
      },
    );
  }
  for (let port: number = first; port <= last; port += 1) if (!taken.has(port)) return port;
  throw new SvcError('SVC_PORT_BUSY', `No port from ${first} to ${last}, which lead to the balancers of this controller, is free.`);
}

/** What the daemon knows about the ports of this machine. */
export interface KnownPorts {
  /** Ports of services of this home. */
  readonly taken: ReadonlySet<number>;
  /** Ports of services of other homes, whether or not their balancers run. */
  readonly others: ReadonlyMap<number, PortClaim>;
  readonly first: number;
}

/** SVC_PORT_BUSY for a port that belongs to a service of another home. */
export function claimedPort(port: number, claim: PortClaim): SvcError {
  const end =
    claim.uid === getuid?.()
      ? `end that service: SVC_HOME=${shellQuote(claim.home)} svc serve down ${claim.service}`
      : // Never suggest a command on that home: its owner's files would run with this user's rights.
        `ask that user to end the service; when it no longer exists, that user or root can remove ${claim.path}`;
  return new SvcError('SVC_PORT_BUSY', `Port ${port} belongs to ${describeClaim(claim)}.`, {
    hint: `Choose another port, leave it out to get a free one, or ${end}`,
  });
}

/** The requested port if it is free, else SVC_PORT_BUSY. Without a request, the next free unclaimed port. */
export async function chooseEndpointPort(
  host: string,
  requested: number | undefined,
  { taken, others, first }: KnownPorts,
): Promise<number> {
  if (requested !== undefined) {
    const claim = others.get(requested);
    if (taken.has(requested)) throw new SvcError('SVC_PORT_BUSY', `Port ${requested} is the endpoint of another service.`);
    if (claim !== undefined) throw claimedPort(requested, claim);
    if (!(await isPortFree(host, requested)))
      throw new SvcError('SVC_PORT_BUSY', `Port ${requested} on ${host} is in use by another program, or not allowed for this user.`);
    return requested;
  }
  const range = lastEndpointPort - firstEndpointPort + 1;
  for (let tried = 0; tried < range; tried += 1) {
    const port = firstEndpointPort + ((first - firstEndpointPort + tried) % range);
    if (!taken.has(port) && !others.has(port) && (await isPortFree(host, port))) return port;
  }
  throw new SvcError('SVC_PORT_BUSY', `No port from ${firstEndpointPort} to ${lastEndpointPort} is free on ${host}.`);
}
