import type { ReplicaAddress } from '../shared/replica-address.ts';

/** Operations on one machine, on any provider. All implementations pass one conformance suite. */
export interface Remote {
  /** Absolute folder on the machine for this replica alone; contains the job files. */
  readonly baseDir: string;
  /** Prefix of the command of `run`, not of `setup`, that enters the isolation. Empty: the machine is the isolation. */
  readonly enter: readonly string[];
  /** Prefix of the commands of `setup` and `run` that bounds what they use. Absent: the machine itself is the bound. */
  readonly limit?: readonly string[];
  /** Variables that processes on this machine need (proxies, visible GPUs, replica port, cookie). */
  readonly environment: Readonly<Record<string, string>>;
  /** Runs a command to its end; never throws for a non-zero exit. No shell parses the arguments. */
  exec(argv: readonly string[], options?: ExecOptions): Promise<ExecResult>;
  /**
   * Makes `remoteDir` (absolute) equal to `localDir`: sends new and changed files, removes others unless `keepExtra`.
   * To a machine whose tools cannot list files (busybox) it sends all files each time.
   */
  copyTo(localDir: string, remoteDir: string, options?: CopyToOptions): Promise<void>;
  /** Replaces one small file (a script, an environment with secrets) atomically. Default mode: 0600. */
  writeFile(remotePath: string, content: string, mode?: number): Promise<void>;
  /** Undefined when the file does not exist. */
  readFile(remotePath: string): Promise<string | undefined>;
  /**
   * As `readFile`, for a short text file that is polled: starts no process on the machine. Undefined also when the file
   * is empty or could not be read this way, or the machine does not answer within 5 s; never throws for these.
   */
  readText?(remotePath: string): Promise<string | undefined>;
  /**
   * Calls `onChange` within 250 ms after the file appeared, grew, or was replaced or removed; sometimes also without a
   * change. With a `tail` that does not know fractions of a second (busybox), within about 1 s.
   */
  watch(remotePath: string, onChange: () => void, signal: AbortSignal): void;
  /** Bytes of a growing file from `offset` on, until the signal aborts. Waits for the file to appear. */
  follow(remotePath: string, offset: number, signal: AbortSignal): AsyncIterable<Buffer>;
  /** The file's path if the machine is this one: the caller then links it instead of copying. */
  localPath(remotePath: string): string | undefined;
  /**
   * How to connect to a port of the machine. May open a tunnel first. The result is valid until the machine is
   * terminated, but connections can fail while a broken tunnel is rebuilt.
   */
  address(port: number, options?: AddressOptions): Promise<ReplicaAddress>;
  /**
   * Path of a local Unix socket that leads to the machine's socket at an absolute path, which need not exist yet. The
   * local path is the same each time. Another call rebuilds a broken tunnel.
   */
  forwardSocket(remotePath: string, options?: RemoteCallOptions): Promise<string>;
  /** OOM kills by the machine's own memory limit, if the provider does not report them; undefined when nothing is known. */
  memoryKills?(options?: RemoteCallOptions): Promise<MemoryKills | undefined>;
  /** Content of /proc/net/tcp and tcp6 in the network of the replica's program; empty when it cannot be read. */
  connections?(options?: RemoteCallOptions): Promise<string>;
}

/** Processes killed by a memory limit (OOM). */
export interface MemoryKills {
  readonly kills: number;
  readonly limitBytes?: number | undefined;
}

/** Calls that can be cancelled. */
export interface RemoteCallOptions {
  readonly signal?: AbortSignal;
}

/** Options of an address. */
export interface AddressOptions extends RemoteCallOptions {
  /** Whether the program runs in the machine's network isolation, as `JobSpec.isolated`. Default: true. */
  readonly isolated?: boolean;
}

/** Options of a copy. */
export interface CopyToOptions extends RemoteCallOptions {
  readonly keepExtra?: boolean;
  /**
   * With `keepExtra`, for a folder that others use: its mode stays, and a link to a folder is followed. An entry of
   * another kind is not replaced: the copy fails.
   */
  readonly isShared?: boolean;
}

/** Options of a command. */
export interface ExecOptions extends RemoteCallOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Written to standard input, which is then closed. */
  readonly input?: string;
  readonly timeoutMs?: number;
  /** Leaves the command running after the call, without its output. `exitCode` 0: it started. */
  readonly detached?: boolean;
}

/** How a command ended. Each output is cut at 1 MiB. */
export interface ExecResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}
