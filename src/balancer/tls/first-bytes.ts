import type { Socket } from 'node:net';

/** What a client begins with, as far as it matters. */
export type Opening = 'tls' | 'http2' | 'other';

/** The first record of a TLS handshake (RFC 8446, section 5.1). */
const handshakeRecord = 0x16;
/** What every client of HTTP/2 sends first (RFC 9113, section 3.4); the beginning that no HTTP/1.1 request has. */
const preface = Buffer.from('PRI * HTTP/2.0\r\n');

/** What the first bytes of a connection say; undefined when more are needed. Pure. */
export function openingOf(bytes: Buffer): Opening | undefined {
  if (bytes.length === 0) return undefined;
  if (bytes[0] === handshakeRecord) return 'tls';
  const length = Math.min(bytes.length, preface.length);
  if (bytes.compare(preface, 0, length, 0, length) !== 0) return 'other';
  return length === preface.length ? 'http2' : undefined;
}

/** Reads until the opening is known, puts everything back and pauses the socket. Calls `done` once, unless the socket ends before. */
export function peek(socket: Socket, done: (opening: Opening) => void): void {
  let read: Buffer = Buffer.alloc(0);
  const onData = (bytes: Buffer): void => {
    read = read.length === 0 ? bytes : Buffer.concat([read, bytes]);
    const opening = openingOf(read);
    if (opening === undefined) return;
    socket.off('data', onData);
    socket.pause();
    socket.unshift(read);
    done(opening);
  };
  socket.on('data', onData);
}
