import { type FileHandle, chmod, mkdir, open, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../shared/clock.ts';
import { wholeEnv } from '../shared/env.ts';
import { hasErrno } from '../shared/errors.ts';
import { randomHex } from '../shared/hex.ts';
import type { ReplicaAddress } from '../shared/replica-address.ts';
import { copyTree } from './copy-tree.ts';
import { groupMemoryKills, limitCommand } from './isolation/limits.ts';
import { machineConnections } from './tcp-table.ts';
import type { CopyToOptions, ExecOptions, ExecResult, MemoryKills, Remote, RemoteCallOptions } from './remote.ts';
import { runCommand } from './run-command.ts';
import { watchFolder } from './watch-folder.ts';

/**
 * Programs of replicas must not inherit these: a database password, and the program of this controller, which svc run in
 * a replica would take for its own.
 */
const notForPrograms = { SVC_DATABASE: undefined, SVC_PROGRAM_ROOT: undefined } as const;

/** Settings that differ between local machines. */
export interface LocalRemoteSettings {
  readonly baseDir: string;
  readonly enter: readonly string[];
  /** The machine's folder with `limits.sh`. Absent: nothing bounds its programs. */
  readonly limitsDir?: string | undefined;
  readonly environment: Readonly<Record<string, string>>;
  readonly address: (port: number) => ReplicaAddress;
  readonly clock: Clock;
}

/** A folder of this machine, used directly. */
export class LocalRemote implements Remote {
  readonly baseDir: string;
  readonly enter: readonly string[];
  readonly limit: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly #limitsDir: string | undefined;
  readonly #address: (port: number) => ReplicaAddress;
  readonly #clock: Clock;

  constructor(settings: LocalRemoteSettings) {
    this.baseDir = settings.baseDir;
    this.enter = settings.enter;
    this.#limitsDir = settings.limitsDir;
    this.limit = limitCommand(settings.limitsDir);
    this.environment = settings.environment;
    this.#address = settings.address;
    this.#clock = settings.clock;
  }

  exec(argv: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
    return runCommand(argv, {
      ...options,
      env: { ...wholeEnv(), ...notForPrograms, ...this.environment, ...options.env },
      clock: this.#clock,
    });
  }

  copyTo(localDir: string, remoteDir: string, options: CopyToOptions = {}): Promise<void> {
    return copyTree(localDir, remoteDir, options);
  }

  async writeFile(remotePath: string, content: string, mode = 0o600): Promise<void> {
    await mkdir(dirname(remotePath), { recursive: true, mode: 0o700 });
    const temporary = `${remotePath}.${randomHex(12)}.new`;
    // No fsync: these files describe processes that do not survive a crash of the machine either.
    await writeFile(temporary, content, { mode, flag: 'wx' });
    // The umask reduces the mode of a new file.
    await chmod(temporary, mode);
    await rename(temporary, remotePath);
  }

  async readFile(remotePath: string): Promise<string | undefined> {
    try {
      return await readFile(remotePath, 'utf8');
    } catch (error) {
      // ESRCH: a file of /proc whose process ended during the read.
      if (hasErrno(error, 'ENOENT', 'ENOTDIR', 'ESRCH')) return undefined;
      throw error;
    }
  }

  watch(remotePath: string, onChange: () => void, signal: AbortSignal): void {
    watchFolder(dirname(remotePath), onChange, this.#clock, signal);
  }

  follow(remotePath: string, offset: number, signal: AbortSignal): AsyncIterable<Buffer> {
    return followFile(remotePath, offset, this.#clock, signal);
  }

  localPath(remotePath: string): string {
    return remotePath;
  }

  address(port: number): Promise<ReplicaAddress> {
    return Promise.resolve(this.#address(port));
  }

  forwardSocket(remotePath: string): Promise<string> {
    return Promise.resolve(remotePath);
  }

  memoryKills(): Promise<MemoryKills | undefined> {
    return groupMemoryKills(this, this.#limitsDir);
  }

  connections(options: RemoteCallOptions = {}): Promise<string> {
    return machineConnections(this, this.#limitsDir, options);
  }
}

const chunkBytes = 65_536;

/** ms. Checking an open file for more data costs microseconds and works on every file system. */
const pollMs = 100;

/** Bytes of a growing file from `offset` on, until the signal aborts; waits for the file to appear. */
export async function* followFile(path: string, offset: number, clock: Clock, signal: AbortSignal): AsyncGenerator<Buffer> {
  const file = await openWhenThere(path, clock, signal);
  if (file === undefined) return;
  try {
    let position = offset;
    while (!signal.aborted) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(chunkBytes), 0, chunkBytes, position);
      if (bytesRead === 0) {
        await clock.sleep(pollMs, signal);
        continue;
      }
      position += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

async function openWhenThere(path: string, clock: Clock, signal: AbortSignal): Promise<FileHandle | undefined> {
  while (!signal.aborted) {
    try {
      return await open(path, 'r');
    } catch (error) {
      if (!hasErrno(error, 'ENOENT', 'ENOTDIR')) throw error;
    }
    await clock.sleep(pollMs, signal);
  }
  return undefined;
}
