import { createHash } from 'node:crypto';
import { isolationKinds, type IsolationKind } from '../../remote/isolation/kinds.ts';
import { SvcError } from '../../shared/errors.ts';
import { isObject, parseJson } from '../../shared/json.ts';
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

/**
 * The contents of a machine's `machine.json` on the SSH host: all data needed to use it, and the resources it occupies.
 */
export interface MachineRecord {
  readonly name: string;
  readonly key: string;
  /** The names of its pool and SSH host in the home that created it. */
  readonly pool: string;
  readonly host: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly isolation: IsolationKind;
  /** In the environment of every process of the machine, and nowhere else: the last resort for finding them. */
  readonly cookie: string;
  /** GPUs allotted to this machine alone; null where the SSH host has none. */
  readonly gpus: readonly number[] | null;
  /**
   * Ports that its program listens on where it has no network of its own; no other machine gets these. Empty where it
   * has one.
   */
  readonly ports: readonly number[];
  /** The port that its program must listen on instead, because the port it serves was taken. */
  readonly ownPort: number | null;
  /** CPUs reserved for it; 0 for a machine that shares the SSH host's resources. */
  readonly cpus: number;
  readonly memoryGb: number;
  /**
   * Absolute paths on the SSH host: the machine's folder and, where it has a network of its own, the socket for inbound
   * connections.
   */
  readonly dir: string;
  readonly socket: string;
  /** Boot of the SSH host when the machine was created: under another one all its processes are gone. */
  readonly bootId: string;
  readonly createdAt: number;
}

/** Undefined when the text is not a record: written by another version, or cut short. */
export function parseMachineRecord(text: string): MachineRecord | undefined {
  const value = parseJson(text);
  return isMachineRecord(value) ? value : undefined;
}

/**
 * Whether a value read from JSON is a record. Records come from SSH hosts, which are not trusted: the name becomes part
 * of a local file's name.
 */
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
