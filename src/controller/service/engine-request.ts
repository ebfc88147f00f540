import { request } from 'node:http';
import { type EngineMetrics, readEngineMetrics } from '../../domain/engine-metrics.ts';
import type { Clock } from '../../shared/clock.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { messageOf } from '../../shared/errors.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import { openReplica, type ProbeAnswer } from './probe-request.ts';

/** An engine reports metrics within milliseconds. Slower ones count as missing, ms. */
const metricsTimeoutMs = 2_000;

/** An engine moves its weights to main memory and back: 140 GB took less than 20 s on PCIe 4. */
const tellTimeoutMs = 60_000;

/** Eight vLLM engines behind one port answer with less than 1 MB. */
const maxBytes = 4 * 1_024 * 1_024;

interface EngineReply {
  readonly status: number;
  readonly body: string;
}

/** Result of a call that changes an engine's state. `isRefusal`: it answered with another status than 200. */
export interface EngineAnswer extends ProbeAnswer {
  readonly isRefusal: boolean;
}

/**
 * Reads the metrics of a replica's engine over HTTP/1.1, without the probe's headers, which may have secrets. Undefined
 * when they are missing: no answer within 2 s, another status than 200, more than 4 MiB, no known metric. Never throws.
 */
export async function measureReplica(
  address: ReplicaAddress,
  path: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<EngineMetrics | undefined> {
  try {
    const { status, body } = await call(address, { method: 'GET', path, timeoutMs: metricsTimeoutMs }, clock, signal);
    return status === 200 ? readEngineMetrics(body) : undefined;
  } catch {
    return undefined;
  }
}

/** Makes an engine sleep or wake up, by an empty POST over HTTP/1.1. Waits up to a minute. Never throws. */
export async function tellEngine(address: ReplicaAddress, path: string, clock: Clock, signal: AbortSignal): Promise<EngineAnswer> {
  try {
    const { status } = await call(address, { method: 'POST', path, timeoutMs: tellTimeoutMs }, clock, signal);
    return { passed: status === 200, isRefusal: status !== 200, detail: `${path} answered ${status}` };
  } catch (error) {
    return { passed: false, isRefusal: false, detail: `${path}: ${messageOf(error)}` };
  }
}

interface EngineCall {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly timeoutMs: number;
}

function call(address: ReplicaAddress, { method, path, timeoutMs }: EngineCall, clock: Clock, signal: AbortSignal): Promise<EngineReply> {
  const tooLong = (): Error => new Error(`no answer within ${timeoutMs / 1_000} s`);
  return withDeadline(clock, timeoutMs, (inner) => send(address, { method, path, timeoutMs }, clock, inner), tooLong, signal);
}

async function send(
  address: ReplicaAddress,
  { method, path, timeoutMs }: EngineCall,
  clock: Clock,
  signal: AbortSignal,
): Promise<EngineReply> {
  const socket = await openReplica(address, timeoutMs, clock, signal);
  const { promise, resolve, reject } = Promise.withResolvers<EngineReply>();
  const abort = (): void => reject(new Error('cancelled'));
  signal.addEventListener('abort', abort, { once: true });
  try {
    signal.throwIfAborted();
    const headers = {
      host: 'replica',
      'user-agent': 'svc-engine',
      accept: 'text/plain',
      connection: 'close',
      ...(method === 'POST' && { 'content-length': 0 }),
    };
    const sent = request({ createConnection: () => socket, method, path, headers });
    // The socket arrives paused. By now the request listens to it.
    sent.once('socket', () => socket.resume());
    sent.on('error', reject);
    sent.once('response', (reply) => {
      const pieces: Buffer[] = [];
      let size = 0;
      reply.on('data', (piece: Buffer) => {
        size += piece.length;
        if (size > maxBytes) reject(new Error(`more than ${maxBytes} bytes`));
        else pieces.push(piece);
      });
      reply.on('error', reject);
      reply.once('end', () => resolve({ status: reply.statusCode ?? 0, body: Buffer.concat(pieces).toString('utf8') }));
    });
    sent.end();
    return await promise;
  } finally {
    signal.removeEventListener('abort', abort);
    socket.destroy();
  }
}
