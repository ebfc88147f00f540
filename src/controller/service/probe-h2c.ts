import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream, type IncomingHttpHeaders } from 'node:http2';
import type { Socket } from 'node:net';
import { grpcHealthPath } from '../../domain/probe.ts';
import type { ReadinessProbe } from '../../domain/task.ts';
import { grpcStatusName, isServing, noMessage } from './grpc-health.ts';

/** What a replica said to a probe. */
export interface H2cAnswer {
  readonly passed: boolean;
  /** In a word or a number. */
  readonly said: string;
}

/** A health answer has a few bytes; more is none. */
const maxAnswerBytes = 1_024;

/**
 * One request over HTTP/2 without TLS on a fresh connection. 200 means ready; for the path of gRPC's health check, status 0 and SERVING do. Rejects
 * when the connection breaks, the peer does not speak HTTP/2, or the signal aborts.
 */
export async function askH2c(socket: Socket, probe: ReadinessProbe, signal: AbortSignal): Promise<H2cAnswer> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<H2cAnswer>();
  // It comes paused, before it has ever been read from: HTTP/2 takes over its handle, which must be reading by then. This takes nothing out of it.
  socket.read(0);
  const session = connect('http://replica', { createConnection: () => socket });
  const abort = (): void => reject(new Error('cancelled'));
  signal.addEventListener('abort', abort, { once: true });
  session.on('error', reject);
  session.on('close', () => reject(new Error('the connection was closed before an answer')));
  try {
    const stream = probe.path === grpcHealthPath ? askHealth(session, probe, resolve) : askStatus(session, probe, resolve);
    stream.on('error', reject);
    return await promise;
  } finally {
    signal.removeEventListener('abort', abort);
    session.destroy();
    socket.destroy();
  }
}

type Resolve = (answer: H2cAnswer) => void;

/** The status is all that counts. */
function askStatus(session: ClientHttp2Session, probe: ReadinessProbe, resolve: Resolve): ClientHttp2Stream {
  const body = probe.postData;
  const stream = session.request({
    ...headersOf(probe),
    ':method': body === undefined ? 'GET' : 'POST',
    ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  });
  stream.on('response', ({ ':status': status = 0 }) => resolve({ passed: status === 200, said: String(status) }));
  stream.end(body);
  return stream;
}

/** `Check` of grpc.health.v1.Health for the server as a whole. */
function askHealth(session: ClientHttp2Session, probe: ReadinessProbe, resolve: Resolve): ClientHttp2Stream {
  const stream = session.request({ ...headersOf(probe), ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' });
  const pieces: Buffer[] = [];
  let size = 0;
  let head: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders = {};
  stream.on('response', (headers) => (head = headers));
  stream.on('trailers', (headers) => (trailers = headers));
  stream.on('data', (piece: Buffer) => {
    size += piece.length;
    if (size > maxAnswerBytes) stream.close(constants.NGHTTP2_CANCEL);
    else pieces.push(piece);
  });
  stream.on('end', () => {
    // An answer without a message has its status in the head.
    const status = trailers['grpc-status'] ?? head['grpc-status'];
    if (status === undefined) resolve({ passed: false, said: `${String(head[':status'] ?? 'nothing')}, which is no answer of gRPC` });
    else if (status !== '0') resolve({ passed: false, said: grpcStatusName(String(status)) });
    else {
      const serving = isServing(Buffer.concat(pieces));
      resolve({ passed: serving, said: serving ? 'SERVING' : 'NOT_SERVING' });
    }
  });
  stream.end(noMessage);
  return stream;
}

function headersOf({ path, headers }: ReadinessProbe): Record<string, string> {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const { host = 'replica', ...rest } = Object.fromEntries(lower);
  return { 'user-agent': 'svc-readiness-probe', ...rest, ':path': path, ':authority': host };
}
