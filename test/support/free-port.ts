import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below the ports that svc gives out, and those that systems give to connections and to whoever asks for any: one of these could be taken
 * by other tests before it is used here.
 */
const firstPort = 11_000;
const portCount = 9_000;
const attempts = 100;

/** A port that nobody listens on at this moment, and that nobody is given without asking for it. */
export async function freePort(address = '127.0.0.1'): Promise<number> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const port = randomInt(firstPort, firstPort + portCount);
    if (await isFree(port, address)) return port;
  }
  throw new Error(`no free port at ${address}`);
}

function isFree(port: number, address: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(false) : reject(error)));
    server.listen({ port, host: address, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
