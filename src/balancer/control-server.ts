import { mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { BalancerCommand, BalancerReport, ReplicasCommand } from '../domain/balancer-link.ts';
import { hasErrno } from '../shared/errors.ts';
import { readCommand } from './command.ts';

const maxLineCharacters = 16_777_216;
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
  /** Which file is ours, as another process may put its own in the same place. */
  #inode: number | undefined;

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
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    if (!takeOver && (await isListenedOn(this.#path))) {
      throw Object.assign(new Error(`listen EADDRINUSE: address already in use ${this.#path}`), { code: 'EADDRINUSE' });
    }
    // Under a name of its own first: Node removes the file by the name it was made with, which by then can be that of a successor; and clients find
    // one of the two at any moment.
    const own = `${this.#path}.${process.pid}`;
    rmSync(own, { force: true });
    await this.#listenAt(own);
    this.#inode = statSync(own).ino;
    renameSync(own, this.#path);
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
    if (this.#inode !== undefined && statSync(this.#path, { throwIfNoEntry: false })?.ino === this.#inode)
      rmSync(this.#path, { force: true });
    this.#inode = undefined;
  }

  #listenAt(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      // The file is made inside `listen`, so there is no moment in which others could connect.
      const before = process.umask(0o177);
      try {
        this.#server.listen(path, () => {
          this.#server.off('error', reject);
          resolve();
        });
      } finally {
        process.umask(before);
      }
    });
  }

  #accept(socket: Socket): void {
    this.#clients.add(socket);
    let waiting = '';
    const tell: Tell = (report) => {
      if (this.#clients.has(socket)) send(socket, `${JSON.stringify(report)}\n`);
    };
    socket.setEncoding('utf8');
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#clients.delete(socket);
      this.#handlers.onGone(tell);
    });
    socket.on('data', (text: string) => {
      const lines = (waiting + text).split('\n');
      waiting = lines.pop() ?? '';
      for (const line of lines) this.#onLine(line, tell);
      if (waiting.length > maxLineCharacters) socket.destroy();
    });
    tell(this.#handlers.greet());
  }

  #onLine(line: string, tell: Tell): void {
    if (line === '') return;
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
