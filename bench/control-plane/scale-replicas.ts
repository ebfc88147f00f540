import { once } from 'node:events';
import { createServer } from 'node:http';

/** The loopback address of the machine with this number, from 1. */
export function loopbackHost(number: number): string {
  return `127.1.${number >> 8}.${number & 255}`;
}

// All replicas of `scale.ts` in one process, each at an address of its own: `node scale-replicas.ts COUNT PORT`.
const [, , count, port] = process.argv;
if (count !== undefined && import.meta.main) {
  for (let number = 1; number <= Number(count); number += 1) {
    const server = createServer((_, response) => response.end('ok'));
    await once(server.listen(Number(port), loopbackHost(number)), 'listening');
  }
  process.stdout.write('listening\n');
}
