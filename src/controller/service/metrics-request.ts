import { request } from 'node:http';
import { type EngineMetrics, readEngineMetrics } from '../../domain/engine-metrics.ts';
import type { Clock } from '../../shared/clock.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import { openReplica } from './probe-request.ts';

/** An engine answers within milliseconds. A slower one counts as missing, ms. */
const timeoutMs = 2_000;

/** Eight vLLM engines behind one port answer with less than 1 MB. */
const maxBytes = 4 * 1_024 * 1_024;

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
  const deadline = new AbortController();
  const cancel = clock.after(timeoutMs, () => deadline.abort());
  try {
    const text = await readBody(address, path, clock, AbortSignal.any([signal, deadline.signal]));
    return text === undefined ? undefined : readEngineMetrics(text);
  } catch {
    return undefined;
  } finally {
    cancel();
  }
}

async function readBody(address: ReplicaAddress, path: string, clock: Clock, signal: AbortSignal): Promise<string | undefined> {
  const socket = await openReplica(address, timeoutMs, clock, signal);
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
  const abort = (): void => reject(new Error('cancelled'));
  signal.addEventListener('abort', abort, { once: true });
  try {
    signal.throwIfAborted();
    const headers = { host: 'replica', 'user-agent': 'svc-engine-metrics', accept: 'text/plain', connection: 'close' };
    const sent = request({ createConnection: () => socket, path, headers });
    // The socket arrives paused. By now the request listens to it.
    sent.once('socket', () => socket.resume());
    sent.on('error', reject);
    sent.once('response', (reply) => {
      const pieces: Buffer[] = [];
      let size = 0;
      if (reply.statusCode !== 200) return resolve(undefined);
      reply.on('data', (piece: Buffer) => {
        size += piece.length;
        if (size > maxBytes) resolve(undefined);
        else pieces.push(piece);
      });
      reply.on('error', reject);
      reply.once('end', () => resolve(Buffer.concat(pieces).toString('utf8')));
    });
    sent.end();
    return await promise;
  } finally {
    signal.removeEventListener('abort', abort);
    socket.destroy();
  }
}
