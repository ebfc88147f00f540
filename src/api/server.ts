import { createAdaptorServer } from '@hono/node-server';
import { Server } from 'node:http';
import type { Clock } from '../shared/clock.ts';
import type { Logger } from '../shared/log.ts';
import { createApi } from './app.ts';
import type { ApiHandlers } from './handlers.ts';
import { listenOnUnixSocket } from './unix-socket.ts';

/** How long calls that are being answered may take when the server closes, ms. Streams end at once. */
const closeGraceMs = 2_000;

/** What to serve, and where. */
export interface ServeOptions {
  /** Only this user can reach it: mode 0600, in a folder of mode 0700 that is made when missing. */
  readonly socketPath: string;
  readonly handlers: ApiHandlers;
  readonly log: Pick<Logger, 'error' | 'debug'>;
  readonly clock: Clock;
  /** Version of svc. */
  readonly version: string;
  /** Checks replies against the contract, too; for tests. */
  readonly checkReplies?: boolean;
}

/** A control API that is being served. */
export interface ApiServer {
  /**
   * Takes the socket away, ends streams, and lets calls finish for up to 2 s. Not to be awaited by a handler, which it would wait for.
   */
  close(): Promise<void>;
}

/** Serves the control API on a Unix socket. Throws SVC_CONTROLLER_RUNNING when another process serves it there already. */
export async function serveApi(options: ServeOptions): Promise<ApiServer> {
  const { socketPath, clock } = options;
  const closing = new AbortController();
  const app = createApi(options.handlers, { ...options, closing: closing.signal });
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false });
  if (!(server instanceof Server)) throw new Error('the control API is served over HTTP/1.1');
  const socket = await listenOnUnixSocket(server, socketPath);
  return {
    async close() {
      socket.remove();
      closing.abort();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const cancelForce = clock.after(closeGraceMs, () => server.closeAllConnections());
      await closed;
      cancelForce();
    },
  };
}
