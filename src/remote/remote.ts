import type { ReplicaAddress } from '../shared/replica-address.ts';

/** How to work on one machine, wherever it is. Implementations pass one conformance suite. */
export interface Remote {
  /** Absolute folder on the machine that belongs to this replica alone; job files live below it. */
  readonly baseDir: string;
  /**
   * Argument vector to put before the command of `run` so that it enters the machine's isolation; empty where the machine is
   * isolation enough. `setup` is run without it.
   */
  readonly enter: readonly string[];
  /** Variables that processes on the machine need because of where it is (proxies, visible GPUs, replica port, cookie). */
  readonly environment: Readonly<Record<string, string>>;
  /** Runs a command to its end; never throws for a non-zero exit. Arguments are a vector: no shell sees them. */
  exec(argv: readonly string[], options?: ExecOptions): Promise<ExecResult>;
  /**
   * Makes `remoteDir` (absolute on the machine) equal to `localDir`: new and changed files come, others go unless they are to be kept. On a machine whose
   * tools cannot list what it has (busybox) all files come each time.
   */
  copyTo(localDir: string, remoteDir: string, options?: CopyToOptions): Promise<void>;
  /** Writes one small file in one step with the given mode (default 0600): scripts, environment with secrets. */
  writeFile(remotePath: string, content: string, mode?: number): Promise<void>;
  /** A file's content, or undefined when it does not exist. */
  readFile(remotePath: string): Promise<string | undefined>;
  /** Calls `onChange` soon (≤ 250 ms) after files directly in `remoteDir` changed. May call without need. */
  watch(remoteDir: string, onChange: () => void, signal: AbortSignal): void;
  /** Bytes of a growing file from `offset` on, until the signal aborts; waits for the file to appear. */
  follow(remotePath: string, offset: number, signal: AbortSignal): AsyncIterable<Buffer>;
  /** The same file on this machine, where it is one: then it is linked instead of copied. */
  localPath(remotePath: string): string | undefined;
  /**
   * How to open a stream to a port of the machine from here. May open a way there first; what it returns stays good until the machine is gone,
   * though connections over it can fail while a way that broke is being rebuilt.
   */
  address(port: number, options?: RemoteCallOptions): Promise<ReplicaAddress>;
  /**
   * Path of a Unix socket here that leads to one on the machine, given by its absolute path there; nobody has to listen on it yet. The same path each
   * time; a way that broke is opened anew by calling this again.
   */
  forwardSocket(remotePath: string, options?: RemoteCallOptions): Promise<string>;
  /**
   * How often the machine's own limit of memory has ended a process of it, and that limit, for machines that have one of which only their inside tells;
   * undefined where nothing is known.
   */
  memoryKills?(options?: RemoteCallOptions): Promise<MemoryKills | undefined>;
}

/** What became of processes for which there was no memory. */
export interface MemoryKills {
  readonly kills: number;
  readonly limitBytes?: number | undefined;
}

/** Calls that can be cancelled. */
export interface RemoteCallOptions {
  readonly signal?: AbortSignal;
}

/** How files are to be copied. */
export interface CopyToOptions extends RemoteCallOptions {
  /** Files in `remoteDir` that are not in `localDir` stay. */
  readonly keepExtra?: boolean;
  /**
   * With `keepExtra`: the folder is somebody else's. Its own mode stays, a link to a folder is followed, and what is of another kind makes this fail
   * instead of giving way.
   */
  readonly isShared?: boolean;
}

/** How a command is to be run. */
export interface ExecOptions extends RemoteCallOptions {
  /** Added to the machine's environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Given to the command's standard input, then closed. */
  readonly input?: string;
  readonly timeoutMs?: number;
  /** Leaves the command running on its own after the call; its output is discarded and `exitCode` is 0 when it started. */
  readonly detached?: boolean;
}

/** How a command ended. Output is text, cut at 1 MiB each. */
export interface ExecResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}
