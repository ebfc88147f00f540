import { createHash } from 'node:crypto';
import { SvcError } from '../../shared/errors.ts';
import { isMachineId, type MachineId } from '../provider.ts';

/** Where a machine is, and what it is called there: what its id says. */
export interface MachinePlace {
  readonly pool: string;
  readonly host: string;
  /** Name of its folder on the host. */
  readonly name: string;
}

/** Digits of a machine's name: short enough for socket paths, long enough never to be met twice. */
const digits = 16;

/** The same key always names the same machine: what makes asking twice harmless. */
export function machineName(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, digits);
}

/** Whether a value can be a machine's name: nothing that leads anywhere as part of a path. */
export function isMachineName(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{16}$/.test(value);
}

/** `POOL/HOST/NAME`; characters that have a meaning in a path are escaped as in a URL. */
export function machineId({ pool, host, name }: MachinePlace): MachineId {
  const id = [pool, host, name].map(encodeURIComponent).join('/');
  if (!isMachineId(id)) throw new SvcError('SVC_INTERNAL', 'A machine has an empty id.');
  return id;
}

/** Undefined for what is no id of this place. */
export function readMachineId(id: string): MachinePlace | undefined {
  const [pool = '', host = '', name, ...rest] = id.split('/');
  if (pool === '' || host === '' || !isMachineName(name) || rest.length > 0) return undefined;
  try {
    return { pool: decodeURIComponent(pool), host: decodeURIComponent(host), name };
  } catch {
    // Not escaped by us.
    return undefined;
  }
}
