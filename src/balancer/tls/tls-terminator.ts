import type { Socket } from 'node:net';
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls';
import type { Clock } from '../../shared/clock.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import { followTlsFiles, readTlsFiles, type TlsMaterial, type TlsPaths } from './tls-files.ts';

/** For all of a handshake. */
const handshakeMs = 10_000;

/** What a terminator needs from outside. */
export interface TlsTerminatorDeps {
  readonly clock: Clock;
  readonly logger: Pick<Logger, 'info' | 'error'>;
}

/** Ends the TLS of clients, with the certificate that is in the files at the moment. Connections that are open go on with the one they began with. */
export class TlsTerminator {
  readonly #server: Server;
  /** Who waits for the end of a handshake, by the two ends of the connection. */
  readonly #waiting = new Map<string, (socket: TLSSocket) => void>();

  /** Throws SVC_BAD_CERTIFICATE when the files cannot be used. */
  constructor(paths: TlsPaths, { clock, logger }: TlsTerminatorDeps) {
    const first = loadTls(paths);
    this.#server = createServer({ ...contextOptions(first), ALPNProtocols: ['h2', 'http/1.1'], handshakeTimeout: handshakeMs });
    this.#server.on('secureConnection', (socket) => this.#secured(socket));
    // A plain client, an old version, a silent peer: its socket's `close` tells.
    this.#server.on('tlsClientError', (_error, socket) => socket.destroy());
    followTlsFiles(paths, clock, {
      renewed: (material) => {
        this.#server.setSecureContext(contextOptions(material));
        logger.info({ certFile: paths.certFile }, 'The new TLS files are in force');
      },
      broken: (message) => logger.error(message),
    });
  }

  /**
   * Begins the handshake on a connected socket; what was read of it must have been put back. When the handshake comes to nothing, the socket is
   * closed.
   */
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

/** Reads the files and sees whether they fit together. Throws SVC_BAD_CERTIFICATE; nothing of their content is in the message. */
export function loadTls(paths: TlsPaths): TlsMaterial {
  try {
    return readTlsFiles(paths);
  } catch (error) {
    const message = `The endpoint cannot be served with the certificate ${paths.certFile} and the key ${paths.keyFile}: ${messageOf(error)}`;
    throw new SvcError('SVC_BAD_CERTIFICATE', message, { cause: error });
  }
}

function contextOptions({ key, cert }: TlsMaterial): SecureContextOptions {
  return { key, cert, minVersion: 'TLSv1.2' };
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
