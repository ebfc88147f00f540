import { readFileSync } from 'node:fs';
import type { ControllerHost } from '../domain/controller-host.ts';
import { hasErrno, SvcError } from '../shared/errors.ts';
import { isObject } from '../shared/is-object.ts';

/** What whoever put this controller on its machine wrote down for it; undefined where nobody did. Throws SVC_STATE_CORRUPT when it cannot be read. */
export function readHost(path: string): ControllerHost | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
  const value = parse(text);
  if (!isControllerHost(value)) throw new SvcError('SVC_STATE_CORRUPT', `${path} does not say what a controller must know of its machine.`);
  return value;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isControllerHost(value: unknown): value is ControllerHost {
  if (!isObject(value)) return false;
  const { key, publicHost, addresses, place, whenIdle } = value;
  return (
    typeof key === 'string' &&
    typeof publicHost === 'string' &&
    Array.isArray(addresses) &&
    addresses.every((address) => typeof address === 'string') &&
    isObject(place) &&
    typeof place['provider'] === 'string' &&
    typeof place['region'] === 'string' &&
    typeof place['hourlyUsd'] === 'number' &&
    (whenIdle === 'power-off' || whenIdle === 'exit')
  );
}
