import { createHash } from 'node:crypto';
import { SvcError } from '../../shared/errors.ts';
import { isMachineId, type MachineId } from '../provider.ts';

/** The contents of a machine's id: its pool, SSH host and name. */
interface MachineRef {
  readonly pool: string;
  readonly host: string;
  /** Name of its folder on the SSH host. */
  readonly name: string;
}

/** Digits of a machine's name: few enough for socket paths, enough to avoid collisions. */
const digits = 16;

/** The same key always gives the same name: this makes a repeated create harmless. */
export function machineName(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, digits);
}

/** Whether a value can be a machine's name: as part of a path it must not lead out of its folder. */
export function isMachineName(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{16}$/.test(value);
}

/** `POOL/HOST/NAME`; characters that have a meaning in a path are escaped as in a URL. */
export function machineId({ pool, host, name }: MachineRef): MachineId {
  const id = [pool, host, name].map(encodeURIComponent).join('/');
  if (!isMachineId(id)) throw new SvcError('SVC_INTERNAL', 'A machine has an empty id.');
  return id;
}

/** Undefined for an id of another form. */
export function readMachineId(id: string): MachineRef | undefined {
  const [pool = '', host = '', name, ...rest] = id.split('/');
  if (pool === '' || host === '' || !isMachineName(name) || rest.length > 0) return undefined;
  try {
    return { pool: decodeURIComponent(pool), host: decodeURIComponent(host), name };
  } catch {
    // Invalid escapes: svc did not write this id.
    return undefined;
  }
}
