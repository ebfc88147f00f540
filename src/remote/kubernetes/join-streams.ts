import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { CancelTimer, Clock } from '../../shared/clock.ts';

/**
 * Kubernetes cannot carry the end of one direction alone, and a client that left looks like one that has no more to send. What still comes gets
 * through; when nothing came for that long, the client is taken for gone, so that the program in the pod does not work for nobody. ms
 */
const quietMs = 2_000;

/** Carries bytes both ways, no faster than each side reads, until one ends. */
export function joinStreams(client: Socket, stream: Duplex, clock: Clock): void {
  let cancelQuiet: CancelTimer | undefined;
  const awaitQuiet = (): void => {
    cancelQuiet?.();
    cancelQuiet = clock.after(quietMs, () => client.destroy());
  };
  client.once('end', () => {
    awaitQuiet();
    stream.on('data', awaitQuiet);
  });
  client.on('error', () => stream.destroy());
  client.once('close', () => {
    cancelQuiet?.();
    stream.destroy();
  });
  // Also without a byte before: nobody listens there. What is still on its way to the client gets to it.
  stream.on('error', () => undefined);
  stream.once('close', () => {
    client.resume();
    client.end();
  });
  client.pipe(stream, { end: false });
  stream.pipe(client);
}
