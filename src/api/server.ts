import { createAdaptorServer } from '@hono/node-server';
import { Server } from 'node:http';
import type { Clock } from '../shared/clock.ts';
import type { Logger } from '../shared/log.ts';
import { createApi } from './app.ts';
import type { ApiHandlers } from './handlers.ts';
import { listenOnUnixSocket } from './unix-socket.ts';

/** How long open calls may take when the server closes, ms. Streams end at once. */
const closeGraceMs = 2_000;

interface ServeOptions {
  /** Mode 0600, in a folder of mode 0700, which the server creates when it is missing. */
  readonly socketPath: string;
  readonly handlers: ApiHandlers;
  readonly log: Pick<Logger, 'error' | 'debug'>;
  readonly clock: Clock;
  readonly version: string;
  /** Also checks replies against the contract; for tests. */
  readonly checkReplies?: boolean;
}

/** A running server of the control API. */
export interface ApiServer {
  /** Removes the socket, ends streams, and waits up to `closeGraceMs` for handlers: a handler must not await it. */
  close(): Promise<void>;
}

/** Serves the control API on a Unix socket. Throws SVC_CONTROLLER_RUNNING when another process serves it there. */
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
