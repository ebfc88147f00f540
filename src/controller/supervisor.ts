import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import type { HandOverCommand } from '../domain/balancer-link.ts';
import type { CancelTimer, Clock } from '../shared/clock.ts';
import { cpuWaitMs } from '../shared/cpu-wait.ts';
import { wholeEnv } from '../shared/env.ts';
import type { Logger } from '../shared/log.ts';
import { identifyProcess, isAlive, sameProcess, signalProcess, type ProcessIdentity } from '../shared/process-identity.ts';
import { greet, type Greeting } from './greeting.ts';
import { watchForHang } from './hang-watch.ts';

/** A process that is to run for as long as it is wanted. */
export interface Supervised {
  readonly name: string;
  /** Arguments for the Node.js that runs this process. Never secrets: everybody can read them. */
  readonly argv: readonly string[];
  /** It says hello on this Unix socket; see `hello-socket.ts` and the balancer's control socket. */
  readonly socketPath: string;
  readonly logFile: string;
  /** The process that was last known to do this work: when it lives but does not say hello, it is replaced. */
  readonly known: ProcessIdentity | null;
  /** What a process is to say of itself. One that was found and says otherwise is renewed. */
  readonly wanted: { readonly version: string; readonly config?: string };
  /** How one is renewed: it starts its own successor, so that nothing it serves is cut, or it is ended and started again. */
  readonly renewal: 'hand-over' | 'restart';
}

/** How a process came to its end. */
export type ProcessEnd = 'died' | 'hung';

/** What the supervisor needs and tells. */
export interface SupervisorDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether it is still to run; asked before each start. */
  isWanted(): Promise<boolean>;
  /** A living process, started or found. */
  onUp(identity: ProcessIdentity): void;
  /** It ended unasked; `failing` after several quick deaths in a row. */
  onDown(failing: boolean, how: ProcessEnd): void;
}

const firstBackoffMs = 20;
const longestBackoffMs = 10_000;
/** A process that lived so long was healthy. */
const healthyMs = 30_000;
const failingAfterDeaths = 6;
/** How long a process may take until it says hello, ms. */
const helloTimeoutMs = 15_000;
const pollMs = 20;
/** How long one that nobody knew of may take to say hello before everything is ended, ms. */
const lastLookMs = 2_000;
/** How long a process may take to start its successor before it is asked again, ms. */
const handOverMs = 60_000;
/** How long a process that is to be restarted may finish what it has, ms. */
const restartGraceMs = 2_000;

/**
 * Keeps one process running. It is started in a session of its own, so that it outlives this one; a process that a predecessor started is found
 * by its socket and taken over, and renewed when it runs other code or another configuration. Its death is seen by the breaking of the connection,
 * at once; when another living process answers in its place by then, that one is its successor, and nobody died. One that hangs is killed.
 */
export class Supervisor {
  readonly #what: Supervised;
  readonly #deps: SupervisorDeps;
  readonly #stop = new AbortController();
  #greeting: Greeting | undefined;
  /** Started and not heard of yet, or not heard of again. */
  #silent: ProcessIdentity | undefined;
  /** Processes that handed over and may still be finishing what they had. */
  #former: readonly ProcessIdentity[] = [];
  /** What is started here runs what is there: only a process that was found can be an old one. */
  #mayBeOld = true;
  /** Settles when the process that is restarted is gone: until then it holds what the next one needs. */
  #restart: Promise<void> | undefined;
  #end: ProcessEnd = 'died';
  #deaths = 0;
  #lastExitCode: number | undefined;
  readonly #ended: Promise<void>;

  constructor(what: Supervised, deps: SupervisorDeps) {
    this.#what = what;
    this.#deps = deps;
    this.#silent = what.known ?? undefined;
    this.#ended = this.#run();
  }

  /** The living process, or undefined while there is none. */
  get identity(): ProcessIdentity | undefined {
    return this.#greeting?.identity;
  }

  /** How the process that was last started here ended by itself; undefined while it has not. */
  get lastExitCode(): number | undefined {
    return this.#lastExitCode;
  }

  /** Sends one line to the process; lost when there is none, so it must be no more than a hint. */
  tell(line: string): void {
    this.#greeting?.socket.write(`${line}\n`);
  }

  /** Lets go of the process without ending it. Never rejects. */
  async release(): Promise<void> {
    this.#stop.abort();
    this.#greeting?.socket.destroy();
    await this.#ended;
  }

  /** Ends the process at once and starts no other one. */
  kill(): void {
    this.#stop.abort();
    for (const one of [this.identity, this.#silent, ...this.#former]) if (one !== undefined) signalProcess(one, 'SIGKILL');
  }

  /** Ends the process: SIGTERM, after `graceMs` SIGKILL; settles when it is gone. */
  async end(graceMs: number): Promise<void> {
    const known = [this.identity, this.#silent, ...this.#former];
    await this.release();
    const { clock } = this.#deps;
    // One more may have been started while it was being let go of.
    const all = new Set([...known, this.#silent].filter((one) => one !== undefined));
    const endOther = async (): Promise<void> => {
      // It was just being looked for, or has just taken the place of the one that is known: then only its socket tells of it.
      const found = await greet(this.#what.socketPath, { clock, timeoutMs: lastLookMs });
      found?.socket.destroy();
      // Asked twice, a process does not finish what it has.
      if (found !== undefined && ![...all].some((one) => sameProcess(one, found.identity)))
        await endProcess(found.identity, graceMs, clock);
    };
    await Promise.all([endOther(), ...[...all].map((one) => endProcess(one, graceMs, clock))]);
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        if (!(await this.#life())) return;
      } catch (error) {
        // A full disk or a locked database today must not end the supervision for ever.
        this.#deps.log.error({ err: error, process: this.#what.name }, 'supervising a process failed');
        await this.#deps.clock.sleep(longestBackoffMs, this.#stop.signal);
      }
    }
  }

  /** From finding or starting the process to its death and the pause after it. False when it is not wanted any more. */
  async #life(): Promise<boolean> {
    const { clock } = this.#deps;
    const startedAt = clock.monotonic();
    const found = (await this.#greet()) ?? (await this.#startAndGreet());
    if (found !== undefined) await this.#follow(found);
    if (this.#stop.signal.aborted || !(await this.#deps.isWanted())) return false;
    if (this.#restart !== undefined) {
      await this.#restart;
      this.#restart = undefined;
      return true;
    }
    this.#deaths = clock.monotonic() - startedAt >= healthyMs ? 1 : this.#deaths + 1;
    this.#deps.log.warn({ process: this.#what.name, deaths: this.#deaths, how: this.#end }, 'a process ended unasked');
    this.#deps.onDown(this.#deaths >= failingAfterDeaths, this.#end);
    this.#end = 'died';
    // The first death is answered at once; only a process that keeps dying is made to wait.
    const pause = this.#deaths === 1 ? 0 : Math.min(longestBackoffMs, firstBackoffMs * 2 ** (this.#deaths - 1));
    await clock.sleep(pause, this.#stop.signal);
    return true;
  }

  /** From the hello of a process to the end of the last one of its successors. */
  async #follow(first: Greeting): Promise<void> {
    for (let current: Greeting | undefined = first; current !== undefined;) {
      const { identity } = current;
      this.#greeting = current;
      this.#silent = undefined;
      this.#deps.onUp(identity);
      const cancelRenewal = this.#renewIfOld(current);
      const { heard } = current;
      const watched = { heard, waitedMs: () => cpuWaitMs(identity.pid) };
      const cancelWatch = watchForHang(watched, this.#deps.clock, () => this.#killHung(identity));
      await current.closed;
      cancelRenewal();
      cancelWatch();
      this.#greeting = undefined;
      current = await this.#greet();
      if (current === undefined || sameProcess(current.identity, identity)) continue;
      this.#deps.log.info({ process: this.#what.name, pid: current.identity.pid }, 'a process handed over');
      this.#former = [...this.#former.filter(isAlive), identity];
      this.#mayBeOld = false;
    }
  }

  /** Asks a process that was found to make room for one of this version and configuration. What is returned ends the asking. */
  #renewIfOld({ identity, version, config, socket }: Greeting): CancelTimer {
    const { wanted, renewal, name } = this.#what;
    const isOld = this.#mayBeOld && (version !== wanted.version || (wanted.config !== undefined && config !== wanted.config));
    if (!isOld) return () => undefined;
    this.#deps.log.info({ process: name, version, wanted: wanted.version }, 'a process is renewed');
    if (renewal === 'restart') {
      this.#mayBeOld = false;
      this.#restart = endProcess(identity, restartGraceMs, this.#deps.clock);
      return () => undefined;
    }
    const ask = (): void => {
      socket.write(`${JSON.stringify({ type: 'hand-over' } satisfies HandOverCommand)}\n`);
    };
    ask();
    return this.#deps.clock.every(handOverMs, () => {
      this.#deps.log.warn({ process: name, pid: identity.pid }, 'a process did not hand over; it is asked again');
      ask();
    });
  }

  /** Its connection breaks then, and what follows is what follows each death. */
  #killHung(identity: ProcessIdentity): void {
    this.#deps.log.warn({ process: this.#what.name, pid: identity.pid }, 'a process hangs; it is killed');
    this.#end = 'hung';
    signalProcess(identity, 'SIGKILL');
  }

  #greet(): Promise<Greeting | undefined> {
    return greet(this.#what.socketPath, { clock: this.#deps.clock, timeoutMs: helloTimeoutMs, signal: this.#stop.signal });
  }

  async #startAndGreet(): Promise<Greeting | undefined> {
    const { clock } = this.#deps;
    // It lives but says nothing: it hangs, or its socket is gone. Two of a kind must never work side by side.
    if (this.#silent !== undefined) await endProcess(this.#silent, 0, clock);
    if (this.#stop.signal.aborted) return undefined;
    this.#mayBeOld = false;
    const hasExited = this.#spawn();
    const deadline = clock.monotonic() + helloTimeoutMs;
    while (!this.#stop.signal.aborted && clock.monotonic() < deadline) {
      const greeting = await this.#greet();
      if (greeting !== undefined) return greeting;
      if (hasExited()) return undefined;
      await clock.sleep(pollMs, this.#stop.signal);
    }
    return undefined;
  }

  /** Starts the process; the returned function tells whether it has ended already. */
  #spawn(): () => boolean {
    mkdirSync(dirname(this.#what.logFile), { recursive: true, mode: 0o700 });
    const log = openSync(this.#what.logFile, 'a', 0o600);
    try {
      const child = spawn(process.execPath, [...this.#what.argv], { detached: true, stdio: ['ignore', log, log], env: { ...wholeEnv() } });
      let hasExited = false;
      child.once('error', (error) => {
        hasExited = true;
        this.#deps.log.error({ err: error, process: this.#what.name }, 'a process could not be started');
      });
      child.once('exit', (code, signal) => {
        hasExited = true;
        this.#lastExitCode = code ?? undefined;
        this.#deps.log.info({ process: this.#what.name, code, signal }, 'a process ended');
      });
      child.unref();
      this.#silent = child.pid === undefined ? undefined : identifyProcess(child.pid);
      return () => hasExited;
    } finally {
      closeSync(log);
    }
  }
}

/** SIGTERM, after `graceMs` SIGKILL; settles when that very process is gone. */
export async function endProcess(identity: ProcessIdentity, graceMs: number, clock: Clock): Promise<void> {
  if (!signalProcess(identity, graceMs > 0 ? 'SIGTERM' : 'SIGKILL')) return;
  const deadline = clock.monotonic() + graceMs;
  while (isAlive(identity)) {
    if (clock.monotonic() >= deadline) signalProcess(identity, 'SIGKILL');
    await clock.sleep(pollMs);
  }
}
