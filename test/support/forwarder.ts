import { connect, createServer, type Server } from 'node:net';

/**
 * A Unix socket that forwards to ports of this machine after a handshake, like the one of a local replica; see
 * `ReplicaAddress`.
 */
export async function forwarder(path: string): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (near) => {
    near.on('error', () => undefined);
    near.once('data', (first: Buffer) => {
      near.pause();
      const lineEnd = first.indexOf('\n');
      const far = connect({ host: '127.0.0.1', port: Number(first.toString('latin1', 0, lineEnd)), allowHalfOpen: true });
      let isConnected = false;
      far.on('error', (error) => {
        if (!isConnected) near.end(`ERR ${'code' in error ? String(error.code) : 'EIO'}\n`);
        else near.destroy();
      });
      far.on('connect', () => {
        isConnected = true;
        near.write('OK\n');
        near.pipe(far);
        far.pipe(near);
      });
      far.on('close', () => isConnected && near.destroy());
      near.on('close', () => far.destroy());
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(path, () => resolve());
  });
  return server;
}
