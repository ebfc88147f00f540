import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';

/**
 * Connects a client's connection with the one that `open` makes. Each direction ends separately, and each side reads no
 * faster than the other. When `open` fails, resets the client's connection and throws that error.
 */
export async function passOn(client: Socket, open: () => Promise<Socket>): Promise<void> {
  client.on('error', () => undefined);
  client.pause();
  try {
    const target = await open();
    target.on('error', () => undefined);
    if (client.destroyed) return void target.destroy();
    pipeline(client, target, (error) => (error ? target.destroy() : undefined));
    pipeline(target, client, (error) => (error ? client.destroy() : undefined));
  } catch (error) {
    client.resetAndDestroy();
    throw error;
  }
}
