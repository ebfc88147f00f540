import { openSync, writeSync } from 'node:fs';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Behaviour, JournalEntry, ReplicaCommand, ReplicaStatus } from './behaviour.ts';
import { FaultyConnection } from './connection.ts';

/**
 * A replica with injected faults, controlled over the channel to its parent process, with which it ends. Arguments: the
 * journal's path and the first behaviour as JSON.
 */
const [, , journalPath = '', first = ''] = process.argv;
const journal = openSync(journalPath, 'a');

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by the starter in this repository
let behaviour = JSON.parse(first) as Behaviour;
let accepted = 0;
let port = 0;
let server: Server | undefined;
const open = new Set<Socket>();

const replica = {
  get behaviour(): Behaviour {
    return behaviour;
  },
  // Written at once, because records must survive a SIGKILL.
  record({ what, id, method, at }: JournalEntry): void {
    writeSync(journal, `${what} ${id} ${method} ${at.toFixed(3)}\n`);
  },
};

function accept(socket: Socket): void {
  accepted += 1;
  open.add(socket);
  socket.once('close', () => open.delete(socket));
  // The socket's listeners keep it alive.
  void new FaultyConnection(socket, replica);
}

function listen(): Promise<void> {
  return new Promise((resolve, reject) => {
    const listening = createServer({ noDelay: true, allowHalfOpen: true }, accept);
    listening.once('error', reject);
    listening.listen({ host: '127.0.0.1', port, backlog: 4_096 }, () => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on TCP has such an address
      ({ port } = listening.address() as AddressInfo);
      resolve();
    });
    server = listening;
  });
}

function refuse(): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    if (server === undefined) resolve();
    else server.close(() => resolve());
  });
  server = undefined;
  for (const socket of open) socket.destroy();
  return closed;
}

async function become(next: Behaviour): Promise<void> {
  behaviour = next;
  if (next.type === 'refuse') await refuse();
  else if (server === undefined) await listen();
}

function reportStatus(): void {
  const status: ReplicaStatus = { port, open: open.size, accepted };
  process.send?.(status);
}

process.on('message', (command: ReplicaCommand) => {
  if (command.type === 'ask') reportStatus();
  else void become(command.behaviour).then(reportStatus);
});
process.on('disconnect', () => process.exit());

await listen();
await become(behaviour);
reportStatus();
