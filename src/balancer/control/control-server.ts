import { connect, createServer, type Server, type Socket } from 'node:net';
import type { BalancerCommand, BalancerReport, ReplicasCommand } from '../../domain/balancer-link.ts';
import { hasErrno } from '../../shared/errors.ts';
import { splitLines } from '../../shared/lines.ts';
import { readCommand } from './command.ts';
import { SocketFile } from './socket-file.ts';

/** A client that does not read its reports is cut rather than remembered for. */
const maxUnreadBytes = 1_048_576;

/** Tells one client something; does nothing once it has left. Sets of replicas are for a process that has handed over. */
export type Tell = (report: BalancerReport | ReplicasCommand) => void;

/** What the control socket serves. */
export interface ControlHandlers {
  /** What a new client is told first. */
  readonly greet: () => BalancerReport;
  /** Carries out a command; `tell` reaches the client that sent it, now or later, and is the same for all commands of one client. */
  readonly execute: (command: BalancerCommand, tell: Tell) => void;
  /** A client left. */
  readonly onGone: (tell: Tell) => void;
  /** A client sent something that is no command. */
  readonly onBadLine: (line: string) => void;
}

/** The balancer's end of the link to the reconciler: one JSON object per line in both directions, any number of clients. */
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
   * Listens with mode 0600. The file that a killed process left is replaced; rejects with EADDRINUSE when a process listens on it, unless that one
   * is to be taken over from.
   */
  async listen(takeOver: boolean): Promise<void> {
    if (!takeOver && (await isListenedOn(this.#path))) {
      throw Object.assign(new Error(`listen EADDRINUSE: address already in use ${this.#path}`), { code: 'EADDRINUSE' });
    }
    this.#file = await SocketFile.take(this.#server, this.#path);
    // A connection that could not be accepted: its client tries again.
    this.#server.on('error', () => undefined);
  }

  get hasClients(): boolean {
    return this.#clients.size > 0;
  }

  /** To every client that is connected. */
  broadcast(report: BalancerReport): void {
    if (this.#clients.size === 0) return;
    const line = `${JSON.stringify(report)}\n`;
    for (const client of this.#clients) send(client, line);
  }

  /** Closes the socket and all its connections, and takes its file away unless it is that of a successor. */
  close(): void {
    this.#server.close();
    for (const client of this.#clients) client.destroySoon();
    this.#file?.remove();
    this.#file = undefined;
  }

  #accept(socket: Socket): void {
    this.#clients.add(socket);
    const tell: Tell = (report) => {
      if (this.#clients.has(socket)) send(socket, `${JSON.stringify(report)}\n`);
    };
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#clients.delete(socket);
      this.#handlers.onGone(tell);
    });
    socket.on(
      'data',
      splitLines((line) => this.#onLine(line, tell)),
    );
    tell(this.#handlers.greet());
  }

  #onLine(line: string, tell: Tell): void {
    const command = readCommand(line);
    if (command === undefined) this.#handlers.onBadLine(line);
    else this.#handlers.execute(command, tell);
  }
}

function send(client: Socket, line: string): void {
  if (client.writableLength > maxUnreadBytes) client.destroy();
  else client.write(line);
}

/** Whether some process accepts connections on the socket file. */
function isListenedOn(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect({ path });
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    // Refused: the file is all that is left. Anything else (such as no permission) is not ours to remove.
    probe.once('error', (error) => resolve(!hasErrno(error, 'ECONNREFUSED', 'ENOENT')));
  });
}
