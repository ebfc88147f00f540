import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** A proxy to a PostgreSQL server that breaks a connection at a chosen statement. */
export interface CuttingProxy {
  readonly port: number;
  /**
   * Breaks the next connection that sends these words: before the server gets them, or afterwards, so that only the
   * answer is lost.
   */
  cutAt(words: string, when: 'before' | 'after'): void;
  close(): Promise<void>;
}

/** Starts a proxy on loopback to a port of this machine. */
export async function startCuttingProxy(target: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  let cut: { readonly words: string; readonly when: 'before' | 'after' } | undefined;
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    let isCut = false;
    const drop = (): void => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', drop);
      socket.on('close', drop);
    }
    client.on('data', (chunk) => {
      if (cut === undefined || !chunk.includes(cut.words)) {
        upstream.write(chunk);
        return;
      }
      isCut = true;
      if (cut.when === 'after') upstream.write(chunk);
      else drop();
      cut = undefined;
    });
    upstream.on('data', (chunk) => {
      // The server has executed it by now.
      if (isCut) drop();
      else client.write(chunk);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    port: address.port,
    cutAt(words, when) {
      cut = { words, when };
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
