import type { Duplex } from 'node:stream';
import type { EdgeProxyCommand, ProxiedService, EdgeProxyGreeting } from '../../domain/edge-proxy/edge-proxy.ts';
import { SvcError } from '../../shared/errors.ts';
import { isObject, parseJson } from '../../shared/json.ts';

/** The key names a folder of the edge proxy, so nothing else may be in it. */
const keyPattern = /^[a-zA-Z0-9-]{1,64}$/;

const isKey = (value: unknown): value is string => typeof value === 'string' && keyPattern.test(value);

/** Parses the first line of a client; undefined when it is no greeting. Pure. */
export function readGreeting(line: string): EdgeProxyGreeting | undefined {
  const value = parseJson(line);
  if (!isObject(value) || value['type'] !== 'greeting') return undefined;
  const { term } = value;
  return typeof term === 'number' && Number.isSafeInteger(term) && term >= 0 ? { type: 'greeting', term } : undefined;
}

/** Parses a command; undefined when it is unknown. Pure. */
export function readCommand(line: string): EdgeProxyCommand | undefined {
  const value = parseJson(line);
  if (!isObject(value)) return undefined;
  const { key, tail, follow, services } = value;
  switch (value['type']) {
    case 'services':
      return Array.isArray(services) && services.every(isHostedService) ? { type: 'services', services } : undefined;
    case 'attach':
    case 'metrics':
      return isKey(key) ? { type: value['type'], key } : undefined;
    case 'log':
      return isKey(key) && typeof follow === 'boolean' && (tail === null || typeof tail === 'number')
        ? { type: 'log', key, tail, follow }
        : undefined;
    default:
      return undefined;
  }
}

/** Whether a value from a connection or a file is a hosted service. The balancer validates its own configuration. */
export function isHostedService(value: unknown): value is ProxiedService {
  if (!isObject(value)) return false;
  const { key, config, tls } = value;
  const isTls = tls === null || (isObject(tls) && typeof tls['key'] === 'string' && typeof tls['cert'] === 'string');
  const isConfig = config === null || (isObject(config) && typeof config['service'] === 'string' && typeof config['port'] === 'number');
  return isKey(key) && isConfig && isTls;
}

const newline = 10;

/** Reads a line of a stream without other readers; later bytes stay. Rejects at its end or if the line is too long. */
export function readLine(stream: Duplex, maxBytes: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const read: Buffer[] = [];
  let length = 0;
  const done = (): void => {
    stream.off('readable', readAvailable).off('end', onEnd).off('close', onEnd).off('error', onError);
  };
  const readAvailable = (): void => {
    for (let chunk: unknown = stream.read(); chunk instanceof Buffer; chunk = stream.read()) {
      const end = chunk.indexOf(newline);
      const line = end < 0 ? chunk : chunk.subarray(0, end);
      read.push(line);
      length += line.length;
      const isTooLong = length > maxBytes;
      if (end < 0 && !isTooLong) continue;
      done();
      if (isTooLong) return reject(new SvcError('SVC_BAD_REQUEST', 'A line of an edge proxy is too long.'));
      if (end + 1 < chunk.length) stream.unshift(chunk.subarray(end + 1));
      return resolve(Buffer.concat(read).toString('utf8'));
    }
    return undefined;
  };
  const onEnd = (): void => (done(), reject(new Error('the connection ended')));
  const onError = (error: Error): void => (done(), reject(error));
  stream.on('readable', readAvailable).on('end', onEnd).on('close', onEnd).on('error', onError);
  if (stream.destroyed) onEnd();
  return promise;
}
