import { isObject, parseJson } from '../../shared/json.ts';
import { isolationKinds, type IsolationKind } from '../../remote/isolation/kinds.ts';
import { isMachineName } from './machine-id.ts';

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
