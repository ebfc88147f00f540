import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Clock } from '../../shared/clock.ts';
import { hasErrno, messageOf } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import { SocketFile } from '../control/socket-file.ts';
import { contentTypes, formatFor, type ExpositionFormat } from './exposition.ts';

// An import would load undici too: a fifth of the processor time of a balancer's start.
const { createServer } = process.getBuiltinModule('node:http');

/** Scrapers are few, and each sends one request and leaves. */
const maxConnections = 32;
const requestTimeoutMs = 5_000;
const checkIntervalMs = 1_000;
const maxHeadBytes = 8_192;
/** How soon to retry a port that another process has, such as the predecessor. */
const retryMs = 500;

/** What the server needs. */
export interface MetricsServerOptions {
  /** Unix socket, mode 0600. */
  readonly socketPath: string;
  /** Port on 127.0.0.1; null for none. */
  readonly port: number | null;
  readonly render: (format: ExpositionFormat) => string;
  readonly clock: Clock;
  readonly logger: Pick<Logger, 'warn' | 'info' | 'error'>;
}

/**
 * Serves `GET /metrics` and `GET /healthz` over HTTP, on a Unix socket and optionally a port. No service traffic passes
 * through it, and a taken port does not stop the service.
 */
export class MetricsServer {
  readonly #options: MetricsServerOptions;
  readonly #servers: Server[] = [];
  #socketFile: SocketFile | undefined;
  #port: number | undefined;
  #isClosed = false;

  constructor(options: MetricsServerOptions) {
    this.#options = options;
  }

  get port(): number | undefined {
    return this.#port;
  }

  /** Begins to listen, as far as possible; never rejects. Takes over an existing socket file from any other process. */
  async start(): Promise<void> {
    await Promise.all([this.#startSocket(), this.#startPort()]);
  }

  /** Closes everything at once; removes the socket file unless another process has taken it over. */
  close(): void {
    this.#isClosed = true;
    for (const server of this.#servers) {
      server.close();
      server.closeAllConnections();
    }
    this.#socketFile?.remove();
  }

  async #startSocket(): Promise<void> {
    const { socketPath, logger } = this.#options;
    const server = this.#newServer();
    try {
      this.#socketFile = await SocketFile.take(server, socketPath);
      this.#serve(server);
    } catch (error) {
      logger.error(`The metrics cannot be had at ${socketPath}: ${messageOf(error)}`);
    }
  }

  async #startPort(): Promise<void> {
    const { port, logger, clock } = this.#options;
    if (port === null) return;
    try {
      this.#port = portOf(await this.#listenAt(port));
      logger.info(`Metrics can be had at http://127.0.0.1:${this.#port}/metrics`);
    } catch (error) {
      if (!hasErrno(error, 'EADDRINUSE')) {
        logger.error(`The metrics cannot be had at port ${port}: ${messageOf(error)}`);
        return;
      }
      logger.warn(`Port ${port} for the metrics (load_balancer.metrics_port) is in use by another process; it is tried until it is free.`);
      clock.after(retryMs, () => void this.#retryPort(port));
    }
  }

  async #retryPort(port: number): Promise<void> {
    if (this.#isClosed) return;
    const { logger, clock } = this.#options;
    try {
      this.#port = portOf(await this.#listenAt(port));
      logger.info(`Metrics can be had at http://127.0.0.1:${port}/metrics now`);
    } catch {
      // The reason was logged the first time.
      clock.after(retryMs, () => void this.#retryPort(port));
    }
  }

  #listenAt(port: number): Promise<Server> {
    const server = this.#newServer();
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host: '127.0.0.1', port }, () => {
        server.off('error', reject);
        this.#serve(server);
        resolve(server);
      });
    });
  }

  #newServer(): Server {
    const limits = {
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: checkIntervalMs,
      maxHeaderSize: maxHeadBytes,
    };
    const server = createServer(limits, (request, response) => this.#answer(request, response));
    server.maxConnections = maxConnections;
    // The limit also applies to clients that do not read their answer.
    server.timeout = requestTimeoutMs;
    return server;
  }

  #serve(server: Server): void {
    server.on('error', (error) => this.#options.logger.error(`The server of the metrics failed: ${messageOf(error)}`));
    this.#servers.push(server);
    if (this.#isClosed) this.close();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    // Idle connections would only use up the connection limit.
    response.setHeader('Connection', 'close');
    const path = request.url?.split('?', 1)[0];
    if (path !== '/metrics' && path !== '/healthz') return end(response, 404, 'There are /metrics and /healthz.\n');
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      return end(response, 405, 'GET is understood.\n');
    }
    if (path === '/healthz') return end(response, 200, 'ok\n');
    const format = formatFor(request.headers.accept);
    return end(response, 200, this.#options.render(format), contentTypes[format]);
  }
}

function end(response: ServerResponse, status: number, text: string, contentType = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}

function portOf(server: Server): number | undefined {
  const address = server.address();
  return address !== null && typeof address === 'object' ? address.port : undefined;
}
