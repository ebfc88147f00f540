import type { Socket } from 'node:net';
import type { Transport, TransportUser } from './transport.ts';

/** Whether a socket speaks TLS. */
export function isEncrypted(socket: Socket): boolean {
  return 'encrypted' in socket && socket.encrypted === true;
}

/** A transport over a Node socket, such as one with TLS. */
export class StreamTransport implements Transport {
  readonly remoteAddress: string;
  readonly isSecure: boolean;
  sends = 0;
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
    this.remoteAddress = socket.remoteAddress ?? '';
    this.isSecure = isEncrypted(socket);
  }

  get isBlocked(): boolean {
    return this.#socket.writableNeedDrain;
  }

  get isPaused(): boolean {
    return this.#socket.isPaused();
  }

  start(user: TransportUser): void {
    const socket = this.#socket;
    socket.on('data', (bytes: Buffer) => user.received(bytes));
    socket.on('end', () => user.ended());
    // The cause does not matter: `close` follows.
    socket.on('error', () => undefined);
    socket.on('close', () => user.closed());
    socket.on('drain', () => user.drained());
    if (socket.destroyed) process.nextTick(() => user.closed());
  }

  text(text: string): void {
    this.sends += 1;
    this.#socket.write(text, 'latin1');
  }

  bytes(bytes: Buffer): void {
    this.sends += 1;
    this.#socket.write(bytes);
  }

  probe(): void {
    // An empty write would send the peer an empty record; the limit for idle connections still applies.
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  end(onSent?: () => void): void {
    this.#socket.end(onSent);
  }

  reset(): void {
    // TLS has no reset: the peer detects the break because the closing alert is missing.
    if (this.#socket.writableLength === 0) this.#socket.destroy();
    else this.#socket.write('', () => this.#socket.destroy());
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
