import type { Socket } from 'node:net';
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls';
import type { TlsMaterial } from './tls-files.ts';

const handshakeMs = 10_000;

/**
 * With TLS 1.2 only forward secrecy and authenticated encryption: the suites of Mozilla's "intermediate" configuration
 * (version 5.7) that use ECDHE, and those of TLS 1.3.
 */
const cipherSuites = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

/** Terminates the TLS of clients. Open connections keep the certificate that they began with. */
export class TlsTerminator {
  readonly #server: Server;
  /** The callbacks that wait for the end of a handshake, by the addresses of both ends of the connection. */
  readonly #waiting = new Map<string, (socket: TLSSocket) => void>();

  constructor(first: TlsMaterial) {
    this.#server = createServer({ ...contextOptions(first), ALPNProtocols: ['h2', 'http/1.1'], handshakeTimeout: handshakeMs });
    this.#server.on('secureConnection', (socket) => this.#secured(socket));
    // A plain client, an old version, a silent peer: the `close` of its socket reports it.
    this.#server.on('tlsClientError', (_error, socket) => socket.destroy());
  }

  renew(material: TlsMaterial): void {
    this.#server.setSecureContext(contextOptions(material));
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

function contextOptions({ key, cert }: TlsMaterial): SecureContextOptions {
  return { key, cert, minVersion: 'TLSv1.2', ciphers: cipherSuites };
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
