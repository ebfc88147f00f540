// The inbound route into a local machine's network namespace, run inside it: forwarder.mjs SOCKET ADDRESS [RELAY_PORT
// RELAY_SOCKET]
//
// A Unix socket in the file system crosses network namespaces. A client sends `PORT\n`. The answer `OK\n` means that
// the stream now belongs to that port. The answer `ERR <errno>\n` means that no process listens there, and no byte of
// the request was forwarded.
// ADDRESS is the namespace's own address and not loopback. So a program that binds 127.0.0.1 only is refused here, as
// on any other machine.
//
// With RELAY_PORT, the forwarder passes loopback connections to it inside on to RELAY_SOCKET, where the outbound proxy
// (egress.ts) listens.
//
// It imports little and is plain JavaScript, because a replica cannot be reached before the forwarder has started.
import { renameSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';

const [, , socketPath, address, relayPort, relaySocket] = process.argv;
const maxPort = 65_535;
/** `65535\n` */
const longestRequest = 6;

function join(client, target) {
  client.on('error', () => target.destroy());
  target.on('error', () => client.destroy());
  // After a regular end of one side, data still being written to the other side must arrive.
  client.on('close', () => (client.readableEnded && client.writableFinished) || target.destroy());
  target.on('close', () => target.readableEnded || client.destroy());
  client.pipe(target);
  target.pipe(client);
}

function answerHandshake(client, bytes) {
  const lineEnd = bytes.indexOf(10);
  if (lineEnd < 0 && bytes.length < longestRequest)
    return client.once('data', (more) => answerHandshake(client, Buffer.concat([bytes, more])));
  client.pause();
  const port = Number(bytes.toString('latin1', 0, lineEnd));
  if (lineEnd < 1 || !Number.isInteger(port) || port < 1 || port > maxPort) return client.end('ERR EINVAL\n');
  const target = connect({ host: address, port, allowHalfOpen: true, noDelay: true });
  const refuse = (error) => client.end(`ERR ${error.code}\n`);
  const giveUp = () => target.destroy();
  client.once('close', giveUp);
  target.once('error', refuse);
  return target.once('connect', () => {
    target.off('error', refuse);
    client.off('close', giveUp);
    client.write('OK\n');
    const rest = bytes.subarray(lineEnd + 1);
    if (rest.length > 0) target.write(rest);
    join(client, target);
  });
}

function welcome(client) {
  client.on('error', () => client.destroy());
  client.once('data', (bytes) => answerHandshake(client, bytes));
}

// SIGTERM reaches every process inside and is meant for the program. The program may still be finishing responses, and
// these pass through here. Node does not inherit an ignored signal from a parent.
process.on('SIGTERM', () => undefined);

// Only the owner may use the socket. It replaces the socket of an earlier forwarder atomically.
process.umask(0o177);
const temporary = `${socketPath}.new`;
rmSync(temporary, { force: true });
createServer({ allowHalfOpen: true }, welcome).listen({ path: temporary, backlog: 4096 }, () => renameSync(temporary, socketPath));

if (relayPort !== undefined && relaySocket !== undefined) {
  createServer({ allowHalfOpen: true, noDelay: true }, (client) =>
    join(client, connect({ path: relaySocket, allowHalfOpen: true })),
  ).listen(Number(relayPort), '127.0.0.1');
}
