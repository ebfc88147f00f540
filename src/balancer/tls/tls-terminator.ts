import { constants } from 'node:crypto';
import type { Socket } from 'node:net';
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls';
import type { TlsRules } from '../../domain/tls-rules.ts';
import type { TlsMaterial } from './tls-files.ts';

const handshakeMs = 10_000;

interface HandshakeUser {
  done(secured: TLSSocket): void;
  /** Not called for a refused certificate. `fault`: OpenSSL's or the system's code. The socket is closed next. */
  failed(fault: string): void;
}

/** Terminates the TLS of clients. Open connections keep the certificate that they began with. */
export class TlsTerminator {
  readonly #server: Server;
  readonly #rules: TlsRules;
  /** Whether clients need a certificate. */
  readonly needsCertificate: boolean;
  /** The handshakes in progress, by the addresses of both ends of the connection. */
  readonly #waiting = new Map<string, HandshakeUser>();

  constructor(first: TlsMaterial, rules: TlsRules) {
    this.#rules = rules;
    this.needsCertificate = first.clientCa !== undefined;
    this.#server = createServer({
      ...contextOptions(first, rules),
      ALPNProtocols: ['h2', 'http/1.1'],
      handshakeTimeout: handshakeMs,
      requestCert: this.needsCertificate,
      rejectUnauthorized: this.needsCertificate,
    });
    this.#server.on('secureConnection', (socket) => this.#secured(socket));
    // A plain client, an old version, a silent peer: the `close` of its socket reports it.
    this.#server.on('tlsClientError', (error, socket) => {
      this.#waiting.get(endsOf(socket))?.failed(nameOf(error));
      socket.destroy();
    });
  }

  renew(material: TlsMaterial): void {
    this.#server.setSecureContext(contextOptions(material, this.#rules));
  }

  /** Starts the handshake. Bytes read from `socket` must have been put back. A failure closes it. */
  secure(socket: Socket, user: HandshakeUser): void {
    const ends = endsOf(socket);
    this.#waiting.set(ends, user);
    socket.once('close', () => this.#waiting.delete(ends));
    this.#server.emit('connection', socket);
  }

  #secured(socket: TLSSocket): void {
    const ends = endsOf(socket);
    const user = this.#waiting.get(ends);
    this.#waiting.delete(ends);
    // Node closes a connection without a valid certificate before this.
    if (user === undefined || (this.needsCertificate && !socket.authorized)) socket.destroy();
    else user.done(socket);
  }
}

function contextOptions({ key, cert, clientCa }: TlsMaterial, { minVersion, ciphers }: TlsRules): SecureContextOptions {
  // A resumed session would skip the check of a certificate that has expired, or whose authority was removed.
  const ofClients = clientCa === undefined ? {} : { ca: clientCa, secureOptions: constants.SSL_OP_NO_TICKET };
  return { ...ofClients, key, cert, minVersion: `TLSv${minVersion}`, ciphers: ciphers.join(':') };
}

const nameOf = (error: Error): string => ('code' in error && typeof error.code === 'string' ? error.code : error.name);

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
