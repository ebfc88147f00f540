import { isObject } from '../../shared/is-object.ts';
import { parseJson } from '../../shared/parse-json.ts';
import { isolationKinds, type IsolationKind } from '../../remote/isolation/kinds.ts';
import { isMachineName } from './machine-id.ts';

/** A machine as its `machine.json` on the host remembers it: what is needed to use it, and to know what it takes up. */
export interface MachineRecord {
  readonly name: string;
  readonly key: string;
  /** What its pool and host were called by whoever made it. */
  readonly pool: string;
  readonly host: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly isolation: IsolationKind;
  /** In the environment of every process of the machine, and nowhere else: how they are found when all else fails. */
  readonly cookie: string;
  /** GPUs given to this machine alone; null where there are none to give. */
  readonly gpus: readonly number[] | null;
  /** What its program listens on where it has no network of its own; nobody else gets these. Empty where it has one. */
  readonly ports: readonly number[];
  /** The port that its program is told to listen on instead, as the one it serves was taken. */
  readonly ownPort: number | null;
  /** What is set aside for it; 0 for one that shares what there is. */
  readonly cpus: number;
  readonly memoryGb: number;
  /** Absolute on the host: its own folder and, where it has a network of its own, the way in. */
  readonly dir: string;
  readonly socket: string;
  /** Of the host, when it was made: with another one all its processes are gone. */
  readonly bootId: string;
  readonly createdAt: number;
}

/** Undefined when the text is not a record: written by another version, or cut short. */
export function parseMachineRecord(text: string): MachineRecord | undefined {
  const value = parseJson(text);
  return isMachineRecord(value) ? value : undefined;
}

/**
 * Whether a value read from JSON is a record. Hosts tell records, and need not be honest: the name becomes part of a file's name here.
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
