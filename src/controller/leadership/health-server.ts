import { createServer } from 'node:http';

/** Current role of a controller. */
export type ControllerRole = 'starting' | 'standby' | 'leader' | 'stopping';

interface HealthServer {
  readonly port: number;
  close(): void;
}

/**
 * Answers `GET /healthz` and `GET /readyz`. An answer means that the process is not stuck. A standby counts as ready;
 * the text tells its role, but only the lease decides which controller leads.
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
