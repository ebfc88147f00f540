import type { RemoteControllerInfo } from '../domain/remote-controller-info.ts';
import { SvcError } from '../shared/errors.ts';
import { isObject, withCurrentNames } from '../shared/json.ts';
import { readJsonFile } from '../shared/system/files.ts';

/** The machine as earlier versions wrote it. */
const formerNames = new Map([['place', 'machine']]);

/** The record that the launcher wrote on this machine, if any. Throws SVC_STATE_CORRUPT when it cannot be read. */
export function readControllerHost(path: string): RemoteControllerInfo | undefined {
  const file = readJsonFile(path);
  if (file === undefined) return undefined;
  const host = withCurrentNames(file.value, formerNames);
  if (!isControllerHost(host)) throw new SvcError('SVC_STATE_CORRUPT', `${path} does not say what a controller must know of its machine.`);
  return host;
}

function isControllerHost(value: unknown): value is RemoteControllerInfo {
  if (!isObject(value)) return false;
  const { key, publicHost, addresses, machine, whenIdle, balancers } = value;
  return (
    typeof key === 'string' &&
    typeof publicHost === 'string' &&
    Array.isArray(addresses) &&
    addresses.every((address) => typeof address === 'string') &&
    isObject(machine) &&
    typeof machine['provider'] === 'string' &&
    typeof machine['region'] === 'string' &&
    typeof machine['hourlyUsd'] === 'number' &&
    (whenIdle === 'power-off' || whenIdle === 'exit') &&
    (balancers === undefined || isEdgeProxies(balancers))
  );
}

function isEdgeProxies(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { tokenFile, port, namespace, members } = value;
  const isFixed = Array.isArray(members) && members.every((member) => typeof member === 'string');
  return typeof tokenFile === 'string' && typeof port === 'number' && (typeof namespace === 'string' || isFixed);
}
