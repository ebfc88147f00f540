import { createHash } from 'node:crypto';
import { isolationKinds, type IsolationKind } from '../../remote/isolation/kinds.ts';
import type { MachineLimits } from '../../domain/machine-limits.ts';
import { SvcError } from '../../shared/errors.ts';
import { isObject, parseJson } from '../../shared/json.ts';
import { isMachineId, type MachineId } from '../provider.ts';

interface MachineRef {
  readonly pool: string;
  readonly host: string;
  /** Name of its folder on the SSH host. */
  readonly name: string;
}

/** Few enough for socket paths, enough to avoid collisions. */
const digits = 16;

/** The same key always gives the same name: this makes a repeated create harmless. */
export function machineName(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, digits);
}

/** As part of a path, a name must not lead out of its folder. */
function isMachineName(value: unknown): value is string {
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

/** `machine.json` on the SSH host: what is needed to use the machine, and the resources that it occupies. */
export interface MachineRecord {
  readonly name: string;
  readonly key: string;
  /** Its pool and SSH host as named by the home that created it. */
  readonly pool: string;
  readonly host: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly isolation: IsolationKind;
  /** In the environment of each of the machine's processes, and nowhere else: the last resort for finding them. */
  readonly cookie: string;
  /** Absent: another version made it, and nothing bounds its programs. */
  readonly limits?: MachineLimits;
  /** GPUs of this machine alone; null: the SSH host has none. */
  readonly gpus: readonly number[] | null;
  /** Ports on the SSH host that no other machine gets. Empty where it has a network of its own. */
  readonly ports: readonly number[];
  /** The port that its program must listen on, because the port it serves was taken. */
  readonly ownPort: number | null;
  /** Reserved CPUs; 0 for a machine that shares the SSH host's resources. */
  readonly cpus: number;
  readonly memoryGb: number;
  /** Absolute paths. The socket is for inbound connections, where the machine has a network of its own. */
  readonly dir: string;
  readonly socket: string;
  /** Boot of the SSH host at the create: after another boot, all of its processes are gone. */
  readonly bootId: string;
  readonly createdAt: number;
}

/** Undefined: the record is from another version, or cut short. */
export function parseMachineRecord(text: string): MachineRecord | undefined {
  const value = parseJson(text);
  return isMachineRecord(value) ? value : undefined;
}

/** SSH hosts are not trusted, and a record's name becomes part of a local file's name. */
export function isMachineRecord(value: unknown): value is MachineRecord {
  return (
    isObject(value) &&
    isMachineName(value['name']) &&
    ['key', 'pool', 'host', 'cookie', 'dir', 'socket', 'bootId'].every((name) => typeof value[name] === 'string') &&
    ['cpus', 'memoryGb', 'createdAt'].every((name) => typeof value[name] === 'number') &&
    isolationKinds.some((kind) => kind === value['isolation']) &&
    isObject(value['tags']) &&
    Array.isArray(value['ports']) &&
    (value['gpus'] === null || Array.isArray(value['gpus'])) &&
    (value['ownPort'] === null || typeof value['ownPort'] === 'number')
  );
}
