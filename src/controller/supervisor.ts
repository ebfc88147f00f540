import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Clock } from '../shared/clock.ts';
import { wholeEnv } from '../shared/env.ts';
import { splitLines } from '../shared/lines.ts';
import type { Logger } from '../shared/log.ts';
import { identifyProcess, isAlive, signalProcess, type ProcessIdentity } from '../shared/process-identity.ts';

/** A process that is to run for as long as it is wanted. */
export interface Supervised {
  readonly name: string;
  /** Arguments for the Node.js that runs this process. Never secrets: everybody can read them. */
  readonly argv: readonly string[];
  /** It says hello on this Unix socket; see `hello-socket.ts` and the balancer's control socket. */
  readonly socketPath: string;
  readonly logFile: string;
}

/** What the supervisor needs and tells. */
export interface SupervisorDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether it is still to run; asked before each start. */
  isWanted(): Promise<boolean>;
  /** A living process, started or found. */
  onUp(identity: ProcessIdentity): void;
  /** It died; `failing` after several quick deaths in a row. */
  onDown(failing: boolean): void;
}

const firstBackoffMs = 20;
const longestBackoffMs = 10_000;
/** A process that lived so long was healthy. */
const healthyMs = 30_000;
const failingAfterDeaths = 6;
/** How long a new process may take until it says hello. */
const helloTimeoutMs = 15_000;
const helloPollMs = 20;

/**
 * Keeps one process running. It is started in a session of its own, so that it outlives this one; a process that a predecessor started is found
 * by its socket and taken over as it is. Its death is seen by the breaking of the connection, at once.
 */
export class Supervisor {
  readonly #what: Supervised;
  readonly #deps: SupervisorDeps;
  readonly #stop = new AbortController();
  #socket: Socket | undefined;
  #identity: ProcessIdentity | undefined;
  #deaths = 0;
  readonly #ended: Promise<void>;

  constructor(what: Supervised, deps: SupervisorDeps) {
    this.#what = what;
    this.#deps = deps;
    this.#ended = this.#run();
  }

  /** The living process, or undefined while there is none. */
  get identity(): ProcessIdentity | undefined {
    return this.#identity;
  }

  /** Sends one line to the process; lost when there is none, so it must be no more than a hint. */
  tell(line: string): void {
    this.#socket?.write(`${line}\n`);
  }

  /** Lets go of the process without ending it. */
  async release(): Promise<void> {
    this.#stop.abort();
    this.#socket?.destroy();
    await this.#ended;
  }

  /** Ends the process: SIGTERM, after `graceMs` SIGKILL; settles when it is gone. */
  async end(graceMs: number): Promise<void> {
    const identity = this.#identity;
    await this.release();
    if (identity === undefined || !signalProcess(identity, 'SIGTERM')) return;
    const deadline = this.#deps.clock.monotonic() + graceMs;
    while (isAlive(identity)) {
      if (this.#deps.clock.monotonic() >= deadline) signalProcess(identity, 'SIGKILL');
      await this.#deps.clock.sleep(helloPollMs);
    }
  }

  async #run(): Promise<void> {
    const { clock } = this.#deps;
    while (!this.#stop.signal.aborted) {
      const startedAt = clock.monotonic();
      const found = (await this.#attach()) ?? (await this.#startAndAttach());
      if (found !== undefined) {
        this.#deps.onUp(found.identity);
        await found.closed;
      }
      this.#identity = undefined;
      this.#socket = undefined;
      if (this.#stop.signal.aborted || !(await this.#deps.isWanted())) return;
      this.#deaths = clock.monotonic() - startedAt >= healthyMs ? 1 : this.#deaths + 1;
      this.#deps.log.warn({ process: this.#what.name, deaths: this.#deaths }, 'a process died');
      this.#deps.onDown(this.#deaths >= failingAfterDeaths);
      // The first death is answered at once; only a process that keeps dying is made to wait.
      const pause = this.#deaths === 1 ? 0 : Math.min(longestBackoffMs, firstBackoffMs * 2 ** (this.#deaths - 1));
      await clock.sleep(pause, this.#stop.signal);
    }
  }

  async #startAndAttach(): Promise<Attached | undefined> {
    const exited = this.#spawn();
    const deadline = this.#deps.clock.monotonic() + helloTimeoutMs;
    while (!this.#stop.signal.aborted && this.#deps.clock.monotonic() < deadline) {
      const attached = await this.#attach();
      if (attached !== undefined) return attached;
      if (exited()) return undefined;
      await this.#deps.clock.sleep(helloPollMs, this.#stop.signal);
    }
    return undefined;
  }

  /** Starts the process; the returned function tells whether it has ended already. */
  #spawn(): () => boolean {
    mkdirSync(dirname(this.#what.logFile), { recursive: true, mode: 0o700 });
    const log = openSync(this.#what.logFile, 'a', 0o600);
    try {
      const child = spawn(process.execPath, [...this.#what.argv], { detached: true, stdio: ['ignore', log, log], env: { ...wholeEnv() } });
      let ended = false;
      child.once('error', (error) => {
        ended = true;
        this.#deps.log.error({ err: error, process: this.#what.name }, 'a process could not be started');
      });
      child.once('exit', (code, signal) => {
        ended = true;
        this.#deps.log.info({ process: this.#what.name, code, signal }, 'a process ended');
      });
      child.unref();
      return () => ended;
    } finally {
      closeSync(log);
    }
  }

  /** Connects to a living process and waits for its hello. */
  async #attach(): Promise<Attached | undefined> {
    const { promise: hello, resolve } = Promise.withResolvers<ProcessIdentity | undefined>();
    const { promise: closed, resolve: close } = Promise.withResolvers<void>();
    const socket = connect(this.#what.socketPath);
    const cancel = this.#deps.clock.after(helloTimeoutMs, () => socket.destroy());
    socket.on(
      'data',
      splitLines((line) => resolve(helloOf(line))),
    );
    // Missing and refusing sockets mean "no such process"; `close` follows.
    socket.on('error', () => undefined);
    socket.once('close', () => {
      resolve(undefined);
      close();
    });
    const identity = await hello;
    cancel();
    if (identity === undefined || this.#stop.signal.aborted) {
      socket.destroy();
      return undefined;
    }
    this.#socket = socket;
    this.#identity = identity;
    return { identity, closed };
  }
}

interface Attached {
  readonly identity: ProcessIdentity;
  readonly closed: Promise<void>;
}

/** The process behind a hello; undefined for any other line. */
function helloOf(line: string): ProcessIdentity | undefined {
  const message: unknown = JSON.parse(line);
  if (typeof message !== 'object' || message === null || !('pid' in message) || typeof message.pid !== 'number') return undefined;
  return identifyProcess(message.pid);
}
