import type { ControllerHost } from '../domain/controller-host.ts';
import { SvcError } from '../shared/errors.ts';
import { isObject } from '../shared/is-object.ts';
import { readJsonFile } from '../shared/parse-json.ts';

/** What whoever put this controller on its machine wrote down for it; undefined where nobody did. Throws SVC_STATE_CORRUPT when it cannot be read. */
export function readHost(path: string): ControllerHost | undefined {
  const file = readJsonFile(path);
  if (file === undefined) return undefined;
  if (!isControllerHost(file.value))
    throw new SvcError('SVC_STATE_CORRUPT', `${path} does not say what a controller must know of its machine.`);
  return file.value;
}

function isControllerHost(value: unknown): value is ControllerHost {
  if (!isObject(value)) return false;
  const { key, publicHost, addresses, place, whenIdle, balancers } = value;
  return (
    typeof key === 'string' &&
    typeof publicHost === 'string' &&
    Array.isArray(addresses) &&
    addresses.every((address) => typeof address === 'string') &&
    isObject(place) &&
    typeof place['provider'] === 'string' &&
    typeof place['region'] === 'string' &&
    typeof place['hourlyUsd'] === 'number' &&
    (whenIdle === 'power-off' || whenIdle === 'exit') &&
    (balancers === undefined || isBalancerHosts(balancers))
  );
}

function isBalancerHosts(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { tokenFile, port, namespace, members } = value;
  const isFixed = Array.isArray(members) && members.every((member) => typeof member === 'string');
  return typeof tokenFile === 'string' && typeof port === 'number' && (typeof namespace === 'string' || isFixed);
}
