import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../shared/clock.ts';
import { wholeEnv } from '../shared/env.ts';
import { hasErrno } from '../shared/errors.ts';
import { randomHex } from '../shared/random-hex.ts';
import type { ReplicaAddress } from '../shared/replica-address.ts';
import { copyTree } from './copy-tree.ts';
import { followFile } from './follow-file.ts';
import type { CopyToOptions, ExecOptions, ExecResult, Remote } from './remote.ts';
import { runCommand } from './run-command.ts';
import { watchFolder } from './watch-folder.ts';

/** The address of the controller's state holds a password: programs of replicas must not inherit it. */
const notForPrograms = { SVC_DATABASE: undefined } as const;

/** What tells one local machine from another. */
export interface LocalRemoteSettings {
  readonly baseDir: string;
  readonly enter: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly address: (port: number) => ReplicaAddress;
  readonly clock: Clock;
}

/** A folder of this very machine, worked on directly. */
export class LocalRemote implements Remote {
  readonly baseDir: string;
  readonly enter: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly #address: (port: number) => ReplicaAddress;
  readonly #clock: Clock;

  constructor(settings: LocalRemoteSettings) {
    this.baseDir = settings.baseDir;
    this.enter = settings.enter;
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
    // Not synced to the disk: what these files describe does not outlive a crash of the machine either.
    await writeFile(temporary, content, { mode, flag: 'wx' });
    // The mode of a new file is cut by the process's mask.
    await chmod(temporary, mode);
    await rename(temporary, remotePath);
  }

  async readFile(remotePath: string): Promise<string | undefined> {
    try {
      return await readFile(remotePath, 'utf8');
    } catch (error) {
      // ESRCH: a file of /proc whose process ended while it was read.
      if (hasErrno(error, 'ENOENT', 'ENOTDIR', 'ESRCH')) return undefined;
      throw error;
    }
  }

  watch(remoteDir: string, onChange: () => void, signal: AbortSignal): void {
    watchFolder(remoteDir, onChange, this.#clock, signal);
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

  /** It is on this machine already. */
  forwardSocket(remotePath: string): Promise<string> {
    return Promise.resolve(remotePath);
  }
}
