import type { ReplicaAddress } from '../shared/replica-address.ts';

/** Operations on one machine, on any provider. All implementations pass one conformance suite. */
export interface Remote {
  /** Absolute folder on the machine that belongs to this replica alone; it contains the job files. */
  readonly baseDir: string;
  /**
   * Argument vector to prepend to the command of `run` to enter the machine's isolation. Empty where the machine itself
   * is the isolation. `setup` runs without it.
   */
  readonly enter: readonly string[];
  /** Environment variables that processes on this machine need (proxies, visible GPUs, replica port, cookie). */
  readonly environment: Readonly<Record<string, string>>;
  /** Runs a command to its end; never throws for a non-zero exit. Arguments are a vector: no shell parses them. */
  exec(argv: readonly string[], options?: ExecOptions): Promise<ExecResult>;
  /**
   * Makes `remoteDir` (absolute on the machine) equal to `localDir`. Sends new and changed files, and removes others
   * unless `keepExtra` is set. On a machine whose tools cannot list files (busybox) it sends all files each time.
   */
  copyTo(localDir: string, remoteDir: string, options?: CopyToOptions): Promise<void>;
  /** Replaces one small file atomically, with the given mode (default 0600): scripts, environment with secrets. */
  writeFile(remotePath: string, content: string, mode?: number): Promise<void>;
  /** A file's content, or undefined when it does not exist. */
  readFile(remotePath: string): Promise<string | undefined>;
  /** Calls `onChange` soon (≤ 250 ms) after files directly in `remoteDir` changed. May also call without a change. */
  watch(remoteDir: string, onChange: () => void, signal: AbortSignal): void;
  /** Bytes of a growing file from `offset` on, until the signal aborts; waits for the file to appear. */
  follow(remotePath: string, offset: number, signal: AbortSignal): AsyncIterable<Buffer>;
  /** The path of the same file on this machine, if it is local: the caller then links it instead of copying. */
  localPath(remotePath: string): string | undefined;
  /**
   * How to connect to a port of the machine from this one. May open a tunnel first. The result stays valid until the
   * machine is terminated, but connections can fail while a broken tunnel is being rebuilt.
   */
  address(port: number, options?: RemoteCallOptions): Promise<ReplicaAddress>;
  /**
   * Path of a local Unix socket that leads to a socket on the machine, given by its absolute path on the machine. No
   * process needs to listen on the latter yet. The path is the same each time. Another call rebuilds a broken tunnel.
   */
  forwardSocket(remotePath: string, options?: RemoteCallOptions): Promise<string>;
  /**
   * How often the machine's own memory limit killed one of its processes (OOM), and that limit. For machines whose
   * limit shows only from inside; undefined where nothing is known.
   */
  memoryKills?(options?: RemoteCallOptions): Promise<MemoryKills | undefined>;
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

/** Options of a copy. */
export interface CopyToOptions extends RemoteCallOptions {
  /** Keeps files in `remoteDir` that `localDir` lacks. */
  readonly keepExtra?: boolean;
  /**
   * With `keepExtra`: others use the folder too. Its own mode stays, and a link to a folder is followed. An entry of
   * another kind makes the copy fail instead of being replaced.
   */
  readonly isShared?: boolean;
}

/** Options of a command. */
export interface ExecOptions extends RemoteCallOptions {
  /** Added to the machine's environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Written to the command's standard input, which is then closed. */
  readonly input?: string;
  readonly timeoutMs?: number;
  /**
   * Leaves the command running on its own after the call; its output is discarded and `exitCode` is 0 when it started.
   */
  readonly detached?: boolean;
}

/** How a command ended. Both outputs are text, each cut at 1 MiB. */
export interface ExecResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}
