import { request } from 'node:http';
import type { Socket } from 'node:net';
import type { ReadinessProbe, ServiceSpec } from '../../domain/task.ts';
import type { Clock } from '../../shared/clock.ts';
import { dial, DialError } from '../../shared/dial.ts';
import { messageOf } from '../../shared/errors.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import { askH2c } from './probe-h2c.ts';

/** What a probe found; `detail` is for people and names no header and no body. */
export interface ProbeAnswer {
  readonly passed: boolean;
  readonly detail: string;
}

/** What of a service says how its replicas are asked. */
export type ProbedService = Pick<ServiceSpec, 'readinessProbe' | 'protocol'>;

/**
 * Asks a replica whether it is ready: GET, or POST when there is data, over HTTP/2 where it speaks nothing else; 200 alone means yes, and SERVING to
 * the health check of gRPC. Never throws.
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
    const socket = await open(address, timeoutMs, clock, stop);
    if (protocol === 'h2c') {
      const { passed, said } = await askH2c(socket, probe, stop);
      return { passed, detail: `${probe.path} answered ${said}` };
    }
    const status = await ask(socket, probe, stop);
    return { passed: status === 200, detail: `${probe.path} answered ${status}` };
  } catch (error) {
    if (deadline.signal.aborted) return { passed: false, detail: `${probe.path} did not answer within ${probe.timeoutSeconds} s` };
    const detail = describeFailure(probe.path, address, error);
    return { passed: false, detail: protocol === 'h2c' ? `${detail} (protocol: h2c expects HTTP/2 without TLS)` : detail };
  } finally {
    cancel();
  }
}

function describeFailure(path: string, { kind, port }: ReplicaAddress, error: unknown): string {
  // Of a way to a replica only what it answered is about the program; where it cannot be dialled itself, as of a host that is off, nothing is known of that.
  if (error instanceof DialError && kind !== 'tcp' && (error.cause !== undefined || error.code === 'ECONNRESET')) {
    return `${path} could not be asked: there is no connection to the replica's machine`;
  }
  if (error instanceof DialError && error.code === 'ECONNREFUSED') {
    return `nothing listens on port ${port} yet (the program must listen on 0.0.0.0, not on 127.0.0.1 alone)`;
  }
  return `${path} could not be asked: ${messageOf(error)}`;
}

/** A connection to the replica, given up when the signal aborts. */
async function open(address: ReplicaAddress, timeoutMs: number, clock: Clock, signal: AbortSignal): Promise<Socket> {
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

/** One request on a fresh connection; the status is all that counts, so the body is not read. */
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
  // It comes paused; by now the request listens to it.
  sent.once('socket', () => socket.resume());
  sent.once('response', (reply) => {
    resolve(reply.statusCode ?? 0);
    socket.destroy();
  });
  sent.once('error', reject);
  sent.end(body);
  return promise.finally(() => signal.removeEventListener('abort', abort));
}
