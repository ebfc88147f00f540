import { createServer } from 'node:net';
import { balancerHostEndpoints } from '../domain/balancer-host.ts';
import { hasErrno, SvcError } from '../shared/errors.ts';

/** Endpoints get the first free port from here on, as users of this kind of tool know it. */
export const firstEndpointPort = 30_001;
/** The last one: those behind it are given to connections that this machine makes. */
export const lastEndpointPort = 32_767;

/** Whether a listener could be opened there now. */
export async function isPortFree(host: string, port: number): Promise<boolean> {
  const server = createServer();
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  server.once('error', (error) => (hasErrno(error, 'EADDRINUSE', 'EACCES') ? resolve(false) : reject(error)));
  server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  return promise;
}

/** Throws SVC_PORT_BUSY when the port asked for metrics is not to be had. `taken`: endpoints of services. */
export async function checkMetricsPort(port: number, taken: ReadonlySet<number>): Promise<void> {
  if (!taken.has(port) && (await isPortFree('127.0.0.1', port))) return;
  const message = `Port ${port} on 127.0.0.1, asked for metrics, is in use, or not allowed for this user.`;
  throw new SvcError('SVC_PORT_BUSY', message, {
    hint: 'Give load_balancer.metrics_port another number, or leave it out: svc serve metrics NAME needs none.',
  });
}

/**
 * The same where balancer hosts serve the endpoints: on machines that are not this one, behind a Service that has these ports and no others. That a port is
 * free there is found when they listen.
 */
export function chooseHostedPort(wished: number | undefined, taken: ReadonlySet<number>): number {
  const { first, last } = balancerHostEndpoints;
  if (wished !== undefined) {
    if (taken.has(wished)) throw new SvcError('SVC_PORT_BUSY', `Port ${wished} is the endpoint of another service.`);
    if (wished >= first && wished <= last) return wished;
    throw new SvcError('SVC_PORT_BUSY', `Port ${wished} does not lead to the balancers of this controller: ports ${first} to ${last} do.`, {
      hint: `Choose a port from ${first} to ${last}, or leave it out to get a free one.`,
    });
  }
  for (let port: number = first; port <= last; port += 1) if (!taken.has(port)) return port;
  throw new SvcError('SVC_PORT_BUSY', `No port from ${first} to ${last}, which lead to the balancers of this controller, is free.`);
}

/** The asked port when it is free, else SVC_PORT_BUSY; without a wish the first free one that no other service has. */
export async function chooseEndpointPort(host: string, wished: number | undefined, taken: ReadonlySet<number>): Promise<number> {
  if (wished !== undefined) {
    if (taken.has(wished)) throw new SvcError('SVC_PORT_BUSY', `Port ${wished} is the endpoint of another service.`);
    if (!(await isPortFree(host, wished)))
      throw new SvcError('SVC_PORT_BUSY', `Port ${wished} on ${host} is in use by another program, or not allowed for this user.`);
    return wished;
  }
  for (let port = firstEndpointPort; port <= lastEndpointPort; port += 1) {
    if (!taken.has(port) && (await isPortFree(host, port))) return port;
  }
  throw new SvcError('SVC_PORT_BUSY', `No port from ${firstEndpointPort} to ${lastEndpointPort} is free on ${host}.`);
}
