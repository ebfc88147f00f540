import { mkdirSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { BalancerCommand, BalancerReport } from '../domain/balancer-link.ts';
import { hasErrno } from '../shared/errors.ts';
import { readCommand } from './command.ts';

const maxLineCharacters = 16_777_216;
/** A client that does not read its reports is cut rather than remembered for. */
const maxUnreadBytes = 1_048_576;

/** What the control socket serves. */
export interface ControlHandlers {
  /** What a new client is told first. */
  readonly greet: () => BalancerReport;
  /** Carries out a command at once; what it returns goes to the client that sent it. */
  readonly execute: (command: BalancerCommand) => BalancerReport | undefined;
  /** A client sent something that is no command. */
  readonly onBadLine: (line: string) => void;
}

/** The balancer's end of the link to the reconciler: one JSON object per line in both directions, any number of clients. */
export class ControlServer {
  readonly #path: string;
  readonly #handlers: ControlHandlers;
  readonly #server: Server;
  readonly #clients = new Set<Socket>();

  constructor(path: string, handlers: ControlHandlers) {
    this.#path = path;
    this.#handlers = handlers;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** Listens with mode 0600. The file that a killed process left is replaced; rejects with EADDRINUSE when a process listens on it. */
  async listen(): Promise<void> {
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    try {
      await this.#listenOnce();
    } catch (error) {
      if (!hasErrno(error, 'EADDRINUSE') || (await isListenedOn(this.#path))) throw error;
      unlinkSync(this.#path);
      await this.#listenOnce();
    }
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

  /** Closes the socket and takes its file away. */
  close(): void {
    this.#server.close();
    for (const client of this.#clients) client.destroy();
  }

  #listenOnce(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      // The file is made inside `listen`, so there is no moment in which others could connect.
      const before = process.umask(0o177);
      try {
        this.#server.listen(this.#path, () => {
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
    socket.setEncoding('utf8');
    socket.on('error', () => undefined);
    socket.on('close', () => this.#clients.delete(socket));
    socket.on('data', (text: string) => {
      const lines = (waiting + text).split('\n');
      waiting = lines.pop() ?? '';
      for (const line of lines) this.#onLine(socket, line);
      if (waiting.length > maxLineCharacters) socket.destroy();
    });
    send(socket, `${JSON.stringify(this.#handlers.greet())}\n`);
  }

  #onLine(socket: Socket, line: string): void {
    if (line === '') return;
    const command = readCommand(line);
    if (command === undefined) {
      this.#handlers.onBadLine(line);
      return;
    }
    const reply = this.#handlers.execute(command);
    if (reply !== undefined) send(socket, `${JSON.stringify(reply)}\n`);
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
