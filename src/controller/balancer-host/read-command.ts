import type { HostCommand, HostedService, HostGreeting } from '../../domain/balancer-host.ts';
import { isObject } from '../../shared/is-object.ts';
import { parseJson } from '../../shared/parse-json.ts';

/** Names a folder of the host, so it must be nothing else. */
const keyPattern = /^[a-zA-Z0-9-]{1,64}$/;

const isKey = (value: unknown): value is string => typeof value === 'string' && keyPattern.test(value);

/** The first line of whoever connects; undefined when it is none. Pure. */
export function readGreeting(line: string): HostGreeting | undefined {
  const value = parseJson(line);
  if (!isObject(value) || value['type'] !== 'greeting') return undefined;
  const { term } = value;
  return typeof term === 'number' && Number.isSafeInteger(term) && term >= 0 ? { type: 'greeting', term } : undefined;
}

/** A command; undefined when it is none that is known. Pure. */
export function readHostCommand(line: string): HostCommand | undefined {
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

/** Whether a value that came over a connection, or from a file, is a hosted service; what its balancer is started with, that checks itself. */
export function isHostedService(value: unknown): value is HostedService {
  if (!isObject(value)) return false;
  const { key, config, tls } = value;
  const isTls = tls === null || (isObject(tls) && typeof tls['key'] === 'string' && typeof tls['cert'] === 'string');
  const isConfig = config === null || (isObject(config) && typeof config['service'] === 'string' && typeof config['port'] === 'number');
  return isKey(key) && isConfig && isTls;
}
