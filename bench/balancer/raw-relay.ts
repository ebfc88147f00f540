import { connect, createServer, type Socket } from 'node:net';

/**
 * The minimum work of a proxy on Node.js: it relays all bytes unread, with one replica connection per client
 * connection, in turn.
 *
 * Arguments: own port, then the replicas' ports.
 */
const [port = 0, ...replicaPorts] = process.argv.slice(2).map(Number);
let next = 0;

function relay(from: Socket, to: Socket): void {
  from.on('data', (bytes) => {
    if (!to.write(bytes)) from.pause();
  });
  to.on('drain', () => from.resume());
  from.on('close', () => to.destroy());
  from.on('error', () => undefined);
}

const server = createServer({ noDelay: true }, (client) => {
  const replica = connect({ host: '127.0.0.1', port: replicaPorts[next++ % replicaPorts.length] ?? 0, noDelay: true });
  relay(client, replica);
  relay(replica, client);
});
server.listen({ host: '127.0.0.1', port, backlog: 4_096 });
process.once('SIGTERM', () => process.exit(0));
