import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { hasErrno } from '../../src/shared/errors.ts';

/** Below the ports of endpoints, and of those that the system gives to connections and to whoever asks for any port. */
const [first, last] = [20_000, 29_999] as const;

/**
 * A port that nobody listens on, and that nobody is given by chance: it stays free until a program that is still to be started listens there, and while one is
 * away for a moment.
 */
export async function ownPort(address = '127.0.0.1'): Promise<number> {
  for (;;) {
    const port = randomInt(first, last + 1);
    const server = createServer();
    try {
      server.listen({ host: address, port, exclusive: true });
      await once(server, 'listening');
      server.close();
      await once(server, 'close');
      return port;
    } catch (error) {
      if (!hasErrno(error, 'EADDRINUSE')) throw error;
    }
  }
}
