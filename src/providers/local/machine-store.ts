import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join, dirname } from 'node:path';
import { enterConf, insideResolvConf } from '../../remote/isolation/enter-settings.ts';
import type { IsolationKind, OutboundKind } from '../../remote/isolation/kinds.ts';
import { envVar } from '../../shared/env.ts';
import { hasErrno } from '../../shared/errors.ts';
import { randomHex } from '../../shared/hex.ts';
import { isObject, parseJson } from '../../shared/json.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { programEntry, programFile } from '../../shared/program-files.ts';
import { writeFileAtomic } from '../../shared/system/files.ts';
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
function machinesDir(paths: HomePaths): string {
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
function parseMachineRecord(text: string): MachineRecord | undefined {
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

/**
 * Fills a machine's folder with the files that enter its isolation. Scripts are copied: a shell reads them while they
 * run, and a newer version of svc may replace its own.
 */
export function writeEnterFiles(files: MachineFiles, paths: HomePaths, isolation: IsolationKind, outbound: OutboundKind): void {
  mkdirSync(files.base, { recursive: true, mode: 0o700 });
  if (isolation === 'none') return;
  mkdirSync(files.tmp, { recursive: true });
  chmodSync(files.tmp, 0o1777);
  copyFileSync(programFile('src/node/enter.sh'), files.enter);
  copyFileSync(programFile('src/node/confine.sh'), files.confine);
  copyFileSync(programFile('src/node/forwarder.mjs'), files.forwarder);
  const resolvConf = insideResolvConf(outbound, hostResolvConf());
  if (resolvConf !== undefined) writeFileSync(files.resolvConf, resolvConf);
  const settings = {
    isolation,
    outbound,
    node: process.execPath,
    socket: files.socket,
    proxySocket: files.proxySocket,
    egress: programEntry('node/egress'),
    keep: keptBelowTmp(),
    hide: [paths.home, paths.runtimeDir],
  };
  writeFileSync(files.enterConf, enterConf(settings), { mode: 0o600 });
}

/** Folders below /tmp that a program needs, although it sees a /tmp of its own. */
function keptBelowTmp(): readonly string[] {
  const needed = [envVar('HOME') ?? '', dirname(process.execPath)];
  return [...new Set(needed)].filter((dir) => dir.startsWith('/tmp/'));
}

function hostResolvConf(): string {
  try {
    return readFileSync('/etc/resolv.conf', 'utf8');
  } catch {
    // Without the file, short names are not completed.
    return '';
  }
}

const idPattern = /^[a-z0-9]+$/;
const unfinishedPrefix = '.new-';

/** The local machines as folders. They exist without a running process. */
export class MachineStore {
  readonly paths: HomePaths;

  constructor(paths: HomePaths) {
    this.paths = paths;
  }

  /** Lock of operations that must see all machines at once. */
  get lockFile(): string {
    return join(this.paths.localDir, 'machines.lock');
  }

  files(id: string): MachineFiles {
    return machineFiles(this.paths, id);
  }

  /** Undefined when there is no such machine. */
  read(id: string): MachineRecord | undefined {
    if (!idPattern.test(id)) return undefined;
    try {
      return parseMachineRecord(readFileSync(this.files(id).record, 'utf8'));
    } catch (error) {
      if (hasErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
      throw error;
    }
  }

  list(): readonly MachineRecord[] {
    return this.#names().flatMap((name) => this.read(name) ?? []);
  }

  /**
   * Creates a machine's folder atomically: it exists with all its files, or not at all. The caller must hold the lock.
   */
  add(record: MachineRecord): void {
    const dir = machinesDir(this.paths);
    for (const name of this.#names()) if (name.startsWith(unfinishedPrefix)) rmSync(join(dir, name), { recursive: true, force: true });
    const unfinished = join(dir, `${unfinishedPrefix}${record.id}-${randomHex(6)}`);
    mkdirSync(unfinished, { recursive: true, mode: 0o700 });
    mkdirSync(this.paths.runtimeDir, { recursive: true, mode: 0o700 });
    // Only the folder is renamed; the paths of sockets do not change.
    writeEnterFiles(filesIn(unfinished, this.paths.runtimeDir, record.id), this.paths, record.isolation, record.outbound);
    writeFileSync(join(unfinished, 'machine.json'), JSON.stringify(record), { mode: 0o600 });
    renameSync(unfinished, this.files(record.id).dir);
  }

  replace(record: MachineRecord): void {
    writeFileAtomic(this.files(record.id).record, JSON.stringify(record));
  }

  #names(): readonly string[] {
    try {
      return readdirSync(machinesDir(this.paths));
    } catch (error) {
      if (hasErrno(error, 'ENOENT')) return [];
      throw error;
    }
  }
}
