import type { Socket } from 'node:net';
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls';
import type { TlsRules } from '../../domain/tls-rules.ts';
import type { TlsMaterial } from './tls-files.ts';

const handshakeMs = 10_000;

/** Terminates the TLS of clients. Open connections keep the certificate that they began with. */
export class TlsTerminator {
  readonly #server: Server;
  readonly #rules: TlsRules;
  /** The callbacks that wait for the end of a handshake, by the addresses of both ends of the connection. */
  readonly #waiting = new Map<string, (socket: TLSSocket) => void>();

  constructor(first: TlsMaterial, rules: TlsRules) {
    this.#rules = rules;
    this.#server = createServer({ ...contextOptions(first, rules), ALPNProtocols: ['h2', 'http/1.1'], handshakeTimeout: handshakeMs });
    this.#server.on('secureConnection', (socket) => this.#secured(socket));
    // A plain client, an old version, a silent peer: the `close` of its socket reports it.
    this.#server.on('tlsClientError', (_error, socket) => socket.destroy());
  }

  renew(material: TlsMaterial): void {
    this.#server.setSecureContext(contextOptions(material, this.#rules));
  }

  /** Starts the handshake. Bytes read from `socket` must have been put back. A failure closes it. */
  secure(socket: Socket, done: (secured: TLSSocket) => void): void {
    const ends = endsOf(socket);
    this.#waiting.set(ends, done);
    socket.once('close', () => this.#waiting.delete(ends));
    this.#server.emit('connection', socket);
  }

  #secured(socket: TLSSocket): void {
    const ends = endsOf(socket);
    const done = this.#waiting.get(ends);
    this.#waiting.delete(ends);
    if (done === undefined) socket.destroy();
    else done(socket);
  }
}

function contextOptions({ key, cert }: TlsMaterial, { minVersion, ciphers }: TlsRules): SecureContextOptions {
  return { key, cert, minVersion: `TLSv${minVersion}`, ciphers: ciphers.join(':') };
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
