import { createServer } from 'node:net';
import { SvcError } from '../../shared/errors.ts';
import type { Random } from '../../shared/random.ts';

/** Below the ranges from which systems take ephemeral ports and svc takes endpoints. */
const firstPort = 20_000;
const portCount = 9_000;
const attempts = 100;

/** A port that nobody listens on and no other machine was given. Somebody may take it before the program does; then the program says so. */
export async function chooseOwnPort(random: Random, taken: readonly number[]): Promise<number> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const port = firstPort + Math.floor(random() * portCount);
    if (!taken.includes(port) && (await isFree(port))) return port;
  }
  throw new SvcError('SVC_CAPACITY', `There is no free port between ${firstPort} and ${firstPort + portCount - 1} on this computer.`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
