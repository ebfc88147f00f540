import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join, dirname } from 'node:path';
import { enterConf, insideResolvConf } from '../../remote/isolation/enter-settings.ts';
import type { IsolationKind, OutboundKind } from '../../remote/isolation/kinds.ts';
import { limitsConf } from '../../remote/isolation/limits.ts';
import type { MachineLimits } from '../../domain/machine-limits.ts';
import { envVar } from '../../shared/env.ts';
import { hasErrno } from '../../shared/errors.ts';
import { randomHex } from '../../shared/hex.ts';
import { isObject, parseJson } from '../../shared/json.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { programEntry, programFile } from '../../shared/program-files.ts';
import { writeFileAtomic } from '../../shared/system/files.ts';
import type { MachineId } from '../provider.ts';

/** A local machine's `machine.json`: what is needed to use it, and to remove it in any state. */
export interface MachineRecord {
  readonly id: MachineId;
  readonly key: string;
  readonly region: string;
  /** Spot zone; absent for machines that are not spot. */
  readonly zone?: string;
  /** When its zone reclaims it, ms since the epoch; absent without a notice. */
  readonly reclaimedAt?: number;
  readonly tags: Readonly<Record<string, string>>;
  readonly isolation: IsolationKind;
  readonly outbound: OutboundKind;
  /** In the environment of each of the machine's processes, and nowhere else: the last resort for finding them. */
  readonly cookie: string;
  /** Absent: another version made it, and nothing bounds its programs. */
  readonly limits?: MachineLimits;
  /** GPUs of this machine alone; null: there are none. */
  readonly gpus: readonly number[] | null;
  /** Its program must listen on this port where the machine has no network of its own. */
  readonly ownPort: number | null;
  readonly createdAt: number;
  /** Its folder stays until the machine is destroyed, so that a late `inspect` still reports the reason. */
  readonly preempted: boolean;
}

/** The paths of a local machine. */
export interface MachineFiles {
  readonly dir: string;
  readonly record: string;
  readonly base: string;
  /** The folder that its program sees as /tmp. */
  readonly tmp: string;
  readonly enter: string;
  readonly confine: string;
  readonly enterConf: string;
  readonly limits: string;
  readonly limitsConf: string;
  /** Has the path of its control group. */
  readonly group: string;
  readonly forwarder: string;
  readonly resolvConf: string;
  /** While it exists, nothing is started on the machine. */
  readonly destroying: string;
  /** Its folder's path is short enough for sockets. */
  readonly socket: string;
  readonly proxySocket: string;
}

function machinesDir(paths: HomePaths): string {
  return join(paths.localDir, 'machines');
}

/** A machine's paths; creates nothing. */
export function machineFiles(paths: HomePaths, id: string): MachineFiles {
  return filesIn(join(machinesDir(paths), id), paths.runtimeDir, id);
}

/** The paths of a machine in any folder. */
export function filesIn(dir: string, runtimeDir: string, id: string): MachineFiles {
  return {
    dir,
    record: join(dir, 'machine.json'),
    base: join(dir, 'base'),
    tmp: join(dir, 'tmp'),
    enter: join(dir, 'enter.sh'),
    confine: join(dir, 'confine.sh'),
    enterConf: join(dir, 'enter.conf'),
    limits: join(dir, 'limits.sh'),
    limitsConf: join(dir, 'limits.conf'),
    group: join(dir, 'group'),
    forwarder: join(dir, 'forwarder.mjs'),
    resolvConf: join(dir, 'resolv.conf'),
    destroying: join(dir, 'destroying'),
    socket: join(runtimeDir, `m-${id}.sock`),
    proxySocket: join(runtimeDir, `m-${id}.out`),
  };
}

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
 * Writes the files that enter a machine's isolation. Scripts are copied: a shell reads them while they run, and a newer
 * svc may replace its own.
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

/** The program needs these folders, although it sees a /tmp of its own. */
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

/** Local machines are folders; they exist without a running process. */
export class MachineStore {
  readonly paths: HomePaths;

  constructor(paths: HomePaths) {
    this.paths = paths;
  }

  get lockFile(): string {
    return join(this.paths.localDir, 'machines.lock');
  }

  files(id: string): MachineFiles {
    return machineFiles(this.paths, id);
  }

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

  /** Atomic: the folder exists with all its files, or not at all. The caller must hold the lock. */
  add(record: MachineRecord, maxProcesses: number | undefined): void {
    const dir = machinesDir(this.paths);
    for (const name of this.#names()) if (name.startsWith(unfinishedPrefix)) rmSync(join(dir, name), { recursive: true, force: true });
    const unfinished = join(dir, `${unfinishedPrefix}${record.id}-${randomHex(6)}`);
    mkdirSync(unfinished, { recursive: true, mode: 0o700 });
    mkdirSync(this.paths.runtimeDir, { recursive: true, mode: 0o700 });
    // The paths of sockets do not change with the rename.
    const files = filesIn(unfinished, this.paths.runtimeDir, record.id);
    writeEnterFiles(files, this.paths, record.isolation, record.outbound);
    copyFileSync(programFile('src/node/limits.sh'), files.limits);
    writeFileSync(files.limitsConf, limitsConf(record.limits ?? {}, maxProcesses));
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
