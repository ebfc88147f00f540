import { connect, createServer, type Server, type Socket } from 'node:net';
import { getuid } from 'node:process';
import type { BalancerCommand, BalancerReport, ReplicasCommand } from '../../domain/balancer-link.ts';
import { withReserve } from '../../shared/system/disk-reserve.ts';
import { svcHome } from '../../shared/env.ts';
import { hasErrno } from '../../shared/errors.ts';
import { splitLines } from '../../shared/lines.ts';
import { homePaths } from '../../shared/paths.ts';
import { readCommand } from './read-command.ts';
import { SocketFile } from './socket-file.ts';

/** The server disconnects a client that has more unread bytes. Otherwise its reports would fill the memory. */
const maxUnreadBytes = 1_048_576;

/** Does nothing once the client has disconnected. Only a process that has handed over gets a `ReplicasCommand`. */
export type Notify = (report: BalancerReport | ReplicasCommand) => void;

interface ControlHandlers {
  readonly greet: () => BalancerReport;
  /** All commands of one client have the same `notify`, which sends to this client and identifies it. */
  readonly execute: (command: BalancerCommand, notify: Notify) => void;
  readonly onGone: (notify: Notify) => void;
  readonly onBadLine: (line: string) => void;
}

/** The control socket, for the reconciler and for processes that handed over. Each line is a JSON object. */
export class ControlServer {
  readonly #path: string;
  readonly #handlers: ControlHandlers;
  readonly #server: Server;
  readonly #clients = new Set<Socket>();
  #file: SocketFile | undefined;

  constructor(path: string, handlers: ControlHandlers) {
    this.#path = path;
    this.#handlers = handlers;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /**
   * Listens with mode 0600 and replaces the socket file of a killed process. Without `takeOver`, rejects with
   * EADDRINUSE when a process listens there.
   */
  async listen(takeOver: boolean): Promise<void> {
    if (!takeOver && (await isListenedOn(this.#path))) {
      throw Object.assign(new Error(`listen EADDRINUSE: address already in use ${this.#path}`), { code: 'EADDRINUSE' });
    }
    // The socket needs an inode, so it may need the disk reserve.
    const paths = homePaths(svcHome(), getuid?.() ?? 0);
    this.#file = await withReserve(paths, () => SocketFile.take(this.#server, this.#path));
    // The server could not accept a connection. Its client tries again.
    this.#server.on('error', () => undefined);
  }

  get hasClients(): boolean {
    return this.#clients.size > 0;
  }

  broadcast(report: BalancerReport): void {
    if (this.#clients.size === 0) return;
    const line = `${JSON.stringify(report)}\n`;
    for (const client of this.#clients) send(client, line);
  }

  /** Closes the server and its connections. Removes the socket file unless it belongs to a successor. */
  close(): void {
    this.#server.close();
    for (const client of this.#clients) client.destroySoon();
    this.#file?.remove();
    this.#file = undefined;
  }

  #accept(socket: Socket): void {
    this.#clients.add(socket);
    const notify: Notify = (report) => {
      if (this.#clients.has(socket)) send(socket, `${JSON.stringify(report)}\n`);
    };
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#clients.delete(socket);
      this.#handlers.onGone(notify);
    });
    socket.on(
      'data',
      splitLines((line) => this.#onLine(line, notify)),
    );
    notify(this.#handlers.greet());
  }

  #onLine(line: string, notify: Notify): void {
    const command = readCommand(line);
    if (command === undefined) this.#handlers.onBadLine(line);
    else this.#handlers.execute(command, notify);
  }
}

function send(client: Socket, line: string): void {
  if (client.writableLength > maxUnreadBytes) client.destroy();
  else client.write(line);
}

function isListenedOn(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect({ path });
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    // ECONNREFUSED: a killed process left the file. Other errors, such as EACCES, prove nothing, so the file stays.
    probe.once('error', (error) => resolve(!hasErrno(error, 'ECONNREFUSED', 'ENOENT')));
  });
}
