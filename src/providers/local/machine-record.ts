import { join } from 'node:path';
import type { IsolationKind, OutboundKind } from '../../remote/isolation/kinds.ts';
import { isObject, parseJson } from '../../shared/json.ts';
import type { HomePaths } from '../../shared/paths.ts';
import type { MachineId } from '../provider.ts';

/** The contents of a local machine's `machine.json`: everything needed to use it, and to remove it in any state. */
export interface MachineRecord {
  readonly id: MachineId;
  readonly key: string;
  readonly region: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly isolation: IsolationKind;
  readonly outbound: OutboundKind;
  /** In the environment of every process of the machine, and nowhere else: the last resort for finding them. */
  readonly cookie: string;
  /** GPUs allotted to this machine alone; null where there are none. */
  readonly gpus: readonly number[] | null;
  /** The port its program must listen on, where it has no network of its own. */
  readonly ownPort: number | null;
  readonly createdAt: number;
  /**
   * The provider reclaimed it. Its folder stays until it is destroyed, so that a late `inspect` still reports the
   * reason.
   */
  readonly preempted: boolean;
}

/** The paths of a local machine's files. */
export interface MachineFiles {
  readonly dir: string;
  readonly record: string;
  /** Working folder of its processes. */
  readonly base: string;
  /** The folder that its program sees as /tmp. */
  readonly tmp: string;
  readonly enter: string;
  readonly confine: string;
  readonly enterConf: string;
  readonly forwarder: string;
  readonly resolvConf: string;
  /** While this file exists, nothing more is started on the machine. */
  readonly destroying: string;
  /** The sockets' folder is separate: its path is short enough for them. */
  readonly socket: string;
  readonly proxySocket: string;
}

/** The folder of all local machines. */
export function machinesDir(paths: HomePaths): string {
  return join(paths.localDir, 'machines');
}

/** Pure: creates nothing. */
export function machineFiles(paths: HomePaths, id: string): MachineFiles {
  return filesIn(join(machinesDir(paths), id), paths.runtimeDir, id);
}

/** The files of a machine in a folder other than its final one. */
export function filesIn(dir: string, runtimeDir: string, id: string): MachineFiles {
  return {
    dir,
    record: join(dir, 'machine.json'),
    base: join(dir, 'base'),
    tmp: join(dir, 'tmp'),
    enter: join(dir, 'enter.sh'),
    confine: join(dir, 'confine.sh'),
    enterConf: join(dir, 'enter.conf'),
    forwarder: join(dir, 'forwarder.mjs'),
    resolvConf: join(dir, 'resolv.conf'),
    destroying: join(dir, 'destroying'),
    socket: join(runtimeDir, `m-${id}.sock`),
    proxySocket: join(runtimeDir, `m-${id}.out`),
  };
}

/** Undefined when the text is not a record: written by another version, or cut short. */
export function parseMachineRecord(text: string): MachineRecord | undefined {
  const value = parseJson(text);
  return isMachineRecord(value) ? value : undefined;
}

function isMachineRecord(value: unknown): value is MachineRecord {
  return (
    isObject(value) &&
    typeof value['id'] === 'string' &&
    typeof value['cookie'] === 'string' &&
    value['cookie'] !== '' &&
    typeof value['isolation'] === 'string' &&
    isObject(value['tags'])
  );
}
