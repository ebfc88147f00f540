import { request } from 'node:http';
import type { Socket } from 'node:net';
import { type ClientHttp2Session, type ClientHttp2Stream, type IncomingHttpHeaders, connect, constants } from 'node:http2';
import type { ReadinessProbe, ServiceSpec } from '../../domain/task.ts';
import type { Clock } from '../../shared/clock.ts';
import { DialError, dial } from '../../shared/system/dial.ts';
import { messageOf } from '../../shared/errors.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import { grpcHealthPath } from '../../domain/replica/probe.ts';

/** Result of a probe. `detail` is shown to users and contains no header and no body. */
export interface ProbeAnswer {
  readonly passed: boolean;
  readonly detail: string;
  /** The replica sent nothing within the time limit, with or without accepting the connection: it may hang. */
  readonly isUnanswered?: boolean;
  /** Its port refused the connection: no program listens there. */
  readonly isClosed?: boolean;
}

/** The fields of a service that determine its probes. */
export type ProbedService = Pick<ServiceSpec, 'readinessProbe' | 'protocol'>;

/**
 * Probes a replica by GET, or by POST with data; over HTTP/2 where the replica speaks nothing else. Only status 200, or
 * SERVING for gRPC's health check, means ready. Never throws.
 */
export async function probeReplica(
  address: ReplicaAddress,
  { readinessProbe: probe, protocol }: ProbedService,
  clock: Clock,
  signal: AbortSignal,
): Promise<ProbeAnswer> {
  const timeoutMs = probe.timeoutSeconds * 1_000;
  const deadline = new AbortController();
  const cancel = clock.after(timeoutMs, () => deadline.abort());
  const stop = AbortSignal.any([signal, deadline.signal]);
  try {
    const socket = await openReplica(address, timeoutMs, clock, stop);
    if (protocol === 'h2c') {
      const { passed, said } = await askH2c(socket, probe, stop);
      return { passed, detail: `${probe.path} answered ${said}` };
    }
    const status = await ask(socket, probe, stop);
    return { passed: status === 200, detail: `${probe.path} answered ${status}` };
  } catch (error) {
    if (deadline.signal.aborted)
      return { passed: false, detail: `${probe.path} did not answer within ${probe.timeoutSeconds} s`, isUnanswered: true };
    const detail = describeFailure(probe.path, address, error);
    if (isRefusal(error)) return { passed: false, detail, isClosed: true };
    return { passed: false, detail: protocol === 'h2c' ? `${detail} (protocol: h2c expects HTTP/2 without TLS)` : detail };
  } finally {
    cancel();
  }
}

function describeFailure(path: string, { kind, port }: ReplicaAddress, error: unknown): string {
  // Behind a tunnel, a failure of the tunnel itself (an SSH host that is off) says nothing about the program.
  if (error instanceof DialError && kind !== 'tcp' && (error.cause !== undefined || error.code === 'ECONNRESET')) {
    return `${path} could not be asked: there is no connection to the replica's machine`;
  }
  if (isRefusal(error)) {
    return `nothing listens on port ${port} yet (the program must listen on 0.0.0.0, not on 127.0.0.1 alone)`;
  }
  return `${path} could not be asked: ${messageOf(error)}`;
}

const isRefusal = (error: unknown): boolean => error instanceof DialError && error.code === 'ECONNREFUSED';

/** A paused connection to a replica. Rejects when there is none within the time limit, or the signal aborts. */
export async function openReplica(address: ReplicaAddress, timeoutMs: number, clock: Clock, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const cancel = dial(address, { timeoutMs, clock }, (error, socket) =>
    socket === undefined ? reject(error ?? new Error('no connection')) : resolve(socket),
  );
  const abort = (): void => {
    cancel();
    reject(new Error('cancelled'));
  };
  signal.addEventListener('abort', abort, { once: true });
  return promise.finally(() => signal.removeEventListener('abort', abort));
}

/** Does not read the body, because only the status counts. */
async function ask(socket: Socket, probe: ReadinessProbe, signal: AbortSignal): Promise<number> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const body = probe.postData;
  const sent = request({
    createConnection: () => socket,
    method: body === undefined ? 'GET' : 'POST',
    path: probe.path,
    headers: {
      host: 'replica',
      'user-agent': 'svc-readiness-probe',
      connection: 'close',
      ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
      ...probe.headers,
    },
  });
  const abort = (): void => {
    socket.destroy();
    reject(new Error('cancelled'));
  };
  signal.addEventListener('abort', abort, { once: true });
  // The socket arrives paused. By now the request listens to it.
  sent.once('socket', () => socket.resume());
  sent.once('response', (reply) => {
    resolve(reply.statusCode ?? 0);
    socket.destroy();
  });
  sent.once('error', reject);
  sent.end(body);
  return promise.finally(() => signal.removeEventListener('abort', abort));
}

interface H2cAnswer {
  readonly passed: boolean;
  /** The answer as a word or a number. */
  readonly said: string;
}

/** A valid health answer has a few bytes. */
const maxAnswerBytes = 1_024;

/**
 * Sends one request over HTTP/2 without TLS. Status 200 means ready; for the path of gRPC's health check, status 0 with
 * SERVING. Rejects when the connection breaks, the peer does not speak HTTP/2, or the signal aborts.
 */
async function askH2c(socket: Socket, probe: ReadinessProbe, signal: AbortSignal): Promise<H2cAnswer> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<H2cAnswer>();
  // HTTP/2 takes over the socket's handle, which must be reading. This starts the paused socket and consumes nothing.
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

/** Calls `Check` of grpc.health.v1.Health for the whole server. */
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
    // An answer without a message has its status in the headers.
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

/** Empty message with gRPC's prefix (not compressed, no bytes): a `HealthCheckRequest` for the whole server. */
export const noMessage = Buffer.alloc(5);

const prefixBytes = 5;
/** Field 1 as a varint: `status` of `HealthCheckResponse` (grpc/health/v1/health.proto). */
const statusTag = 0x08;
const serving = 1;

/** Whether a message, with its prefix, is a `HealthCheckResponse` that says SERVING. */
export function isServing(message: Buffer): boolean {
  const isWhole = message.length >= prefixBytes && message[0] === 0 && message.readUInt32BE(1) === message.length - prefixBytes;
  // A message has this one field, and its values need one byte.
  return isWhole && message.length === prefixBytes + 2 && message[prefixBytes] === statusTag && message[prefixBytes + 1] === serving;
}

/** Statuses of a program without a health service, or one that is still starting. */
const statusNames: Readonly<Record<string, string>> = {
  5: 'NOT_FOUND',
  12: 'UNIMPLEMENTED (the program has no health service)',
  14: 'UNAVAILABLE',
  16: 'UNAUTHENTICATED',
};

/** A gRPC status as text for users. */
export function grpcStatusName(status: string): string {
  const name = statusNames[status];
  return name === undefined ? `gRPC status ${/^\d{1,3}$/.test(status) ? status : '?'}` : `gRPC status ${status}, ${name}`;
}
