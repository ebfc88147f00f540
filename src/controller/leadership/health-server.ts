import { createServer } from 'node:http';

/** What a controller is at the moment. */
export type ControllerRole = 'starting' | 'standby' | 'leader' | 'stopping';

/** A running health check. */
export interface HealthServer {
  readonly port: number;
  close(): void;
}

/**
 * Answers `GET /healthz` and `GET /readyz` for probes. That there is an answer says that the process is not stuck, whether it leads or stands by; a
 * standby is ready too, for what it is there for. Which one leads is told by the lease, and here for people.
 */
export async function serveHealth(port: number, role: () => ControllerRole): Promise<HealthServer> {
  const server = createServer((request, response) => {
    const now = role();
    const isKnown = request.method === 'GET' && (request.url === '/healthz' || request.url === '/readyz');
    const status = isKnown ? (request.url === '/readyz' && now === 'stopping' ? 503 : 200) : 404;
    response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify({ role: now })}\n`);
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(port, resolve);
  await promise;
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close: () => void server.close(() => undefined),
  };
}
