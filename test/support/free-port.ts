import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below the ports that svc assigns and the ephemeral ports of the system. Another test could take one of those before
 * its use.
 */
const firstPort = 11_000;
const portCount = 9_000;
const attempts = 100;

/** Returns a port without a listener, outside of the ranges that are assigned automatically. */
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
