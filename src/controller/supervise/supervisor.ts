import { spawn } from 'node:child_process';
import { closeSync, statSync } from 'node:fs';
import type { HandOverCommand } from '../../domain/balancer-link.ts';
import { delayMs, restartBackoff } from '../../shared/backoff.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import {
  cpuWaitMs,
  identifyProcess,
  isAlive,
  isStopped,
  sameProcess,
  signalProcess,
  readIdentity,
  type ProcessIdentity,
} from '../../shared/system/process-identity.ts';
import { wholeEnv } from '../../shared/env.ts';
import type { Logger } from '../../shared/log.ts';
import { openLog } from '../../shared/system/log-file.ts';
import { greet, type Greeting } from '../greeting.ts';
import { hangMs, watchForHang, type Watched } from './hang-watch.ts';
import { lastErrorInLog, ProcessCrashes, type RecentCrashes } from './process-crashes.ts';

/** A process that must keep running while it is desired. */
export interface Supervised {
  readonly name: string;
  /** Arguments for the Node.js that runs this process. Never secrets: all users can read them. */
  readonly argv: readonly string[];
  /** The process sends its hello on this Unix socket; see `hello-socket.ts` and the balancer's control socket. */
  readonly socketPath: string;
  readonly logFile: string;
  /** The last known process for this work. If it lives but sends no hello, it is replaced. */
  readonly known: ProcessIdentity | null;
  /** The expected hello. A found process with another one is renewed. */
  readonly desired: { readonly version: string; readonly config?: string };
  /** How to renew: the process starts its own successor without cutting requests, or it is ended and started again. */
  readonly renewal: 'hand-over' | 'restart';
}

/** How a process ended. */
export type ProcessEnd = 'died' | 'hung';

interface SupervisorDeps {
  readonly clock: Clock;
  readonly log: Logger;
  shouldRun(): Promise<boolean>;
  /** A live process, started or found. */
  onUp(identity: ProcessIdentity): void;
  /** The process ended unasked; `failing` after several quick deaths in a row. */
  onDown(failing: boolean, how: ProcessEnd): void;
}

/** A process that lived for this long was healthy. */
const healthyMs = 30_000;
const failingAfterDeaths = 6;
/** A process that has no CPU for so long does not come up at all. */
const longestHelloMs = 600_000;
/** Between SIGTERM and SIGKILL for a balancer without a hello: on SIGTERM it ends its standby, which would go on. */
const silentGraceMs = 1_000;
/** A standby holds queued connections, which a new process would lose. It gets more time on a loaded machine. */
const standbyTimeoutMs = 60_000;
const pollMs = 20;
/** How long an unknown process may take to send its hello before everything is ended, ms. */
const lastCheckMs = 2_000;
/** How long a process may take to start its successor before it is asked again, ms. */
const handOverMs = 60_000;
const restartGraceMs = 2_000;

/**
 * Keeps one process running. The process has its own session and outlives this one; a later supervisor finds it by its
 * socket and adopts it. It is renewed when it runs other code or another configuration, and killed when it hangs. A
 * broken connection means a death, unless another live process answers on the socket: the successor.
 */
export class Supervisor {
  #what: Supervised;
  readonly #deps: SupervisorDeps;
  readonly #stop = new AbortController();
  #greeting: Greeting | undefined;
  /** Started, but no hello received yet, or none again. */
  #silent: ProcessIdentity | undefined;
  /** Becomes the next process by itself: the standby of the one that died. */
  #standby: ProcessIdentity | undefined;
  /** Processes that handed over and may still be finishing their work. */
  #former: readonly ProcessIdentity[] = [];
  /** A process started by this supervisor is as desired, unless `renew` changed that since. */
  #mayBeOld = true;
  #isRenewed = false;
  /** Settles when the process being restarted is gone: it holds what the next one needs. */
  #restart: Promise<void> | undefined;
  #end: ProcessEnd = 'died';
  #cancelRenewal: CancelTimer = () => undefined;
  #deaths = 0;
  #lastExitCode: number | undefined;
  /** How the last started process ended, as text; undefined while it lives, and for a found process. */
  #lastExit: string | undefined;
  readonly #crashes: ProcessCrashes;
  #logStart = 0;
  readonly #ended: Promise<void>;

  constructor(what: Supervised, deps: SupervisorDeps) {
    this.#what = what;
    this.#deps = deps;
    this.#silent = what.known ?? undefined;
    this.#crashes = new ProcessCrashes(deps.clock);
    this.#ended = this.#run();
  }

  get identity(): ProcessIdentity | undefined {
    return this.#greeting?.identity;
  }

  /** Whether the process is starting, or will be renewed: the desired one does not run yet. */
  get isRenewing(): boolean {
    return this.#greeting === undefined || this.#isOld(this.#greeting);
  }

  /** Exit code of the last process that this supervisor started and that ended by itself; undefined while it runs. */
  get lastExitCode(): number | undefined {
    return this.#lastExitCode;
  }

  get recentCrashes(): RecentCrashes | undefined {
    return this.#crashes.recent;
  }

  /** Sends a hint to the process, in one line. Without a process it is lost. */
  send(line: string): void {
    this.#greeting?.socket.write(`${line}\n`);
  }

  /** Changes the expected hello. The process is renewed if it has another one. */
  renew(desired: Supervised['desired']): void {
    this.#what = { ...this.#what, desired };
    this.#mayBeOld = true;
    // The next successor may have been started before this call.
    this.#isRenewed = true;
    this.#cancelRenewal();
    if (this.#greeting !== undefined) this.#cancelRenewal = this.#renewIfOld(this.#greeting);
  }

  /** Stops supervising the process without ending it. Never rejects. */
  async release(): Promise<void> {
    this.#stop.abort();
    this.#greeting?.socket.destroy();
    await this.#ended;
  }

  /** Ends the process at once and starts no other. */
  kill(): void {
    this.#stop.abort();
    for (const one of this.#known) if (one !== undefined) signalProcess(one, 'SIGKILL');
  }

  /** Ends the process: SIGTERM, after `graceMs` SIGKILL. Settles when it is gone. */
  async end(graceMs: number): Promise<void> {
    const known = this.#known;
    await this.release();
    const { clock } = this.#deps;
    // Another process may have been started during the release.
    const all = new Set([...known, ...this.#known]);
    const endOther = async (): Promise<void> => {
      // A process that was just being found, or just replaced the known one, is identified only by its socket.
      const found = await greet(this.#what.socketPath, { clock, timeoutMs: lastCheckMs });
      found?.socket.destroy();
      // A process that is asked twice does not finish its work.
      const others = allOf(found).filter((other) => ![...all].some((one) => sameProcess(one, other)));
      await Promise.all(others.map((one) => endProcess(one, graceMs, clock)));
    };
    await Promise.all([endOther(), ...[...all].map((one) => endProcess(one, graceMs, clock))]);
  }

  /** All processes, standbys first: the end of the process they follow would make them the next one. */
  get #known(): readonly ProcessIdentity[] {
    const others = [this.#standby, this.#silent, ...this.#former].filter((one) => one !== undefined);
    return [...allOf(this.#greeting), ...others];
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        if (!(await this.#life())) return;
      } catch (error) {
        // A full disk or a locked database must not end the supervision for ever.
        this.#deps.log.error({ err: error, process: this.#what.name }, 'supervising a process failed');
        await this.#deps.clock.sleep(restartBackoff.longestMs, this.#stop.signal);
      }
    }
  }

  /** One life of the process, with the backoff after its death. Returns false when it is no longer desired. */
  async #life(): Promise<boolean> {
    const { clock } = this.#deps;
    const startedAt = clock.monotonic();
    this.#lastExit = undefined;
    this.#logStart = statSync(this.#what.logFile, { throwIfNoEntry: false })?.size ?? 0;
    const found = (await this.#greet()) ?? (await this.#startAndGreet());
    if (found !== undefined) await this.#follow(found);
    if (this.#stop.signal.aborted || !(await this.#deps.shouldRun())) return false;
    if (this.#restart !== undefined) {
      await this.#restart;
      this.#restart = undefined;
      return true;
    }
    this.#deaths = clock.monotonic() - startedAt >= healthyMs ? 1 : this.#deaths + 1;
    this.#deps.log.warn({ process: this.#what.name, deaths: this.#deaths, how: this.#end }, 'a process ended unasked');
    this.#crashes.add(this.#whyEnded());
    this.#deps.onDown(this.#deaths >= failingAfterDeaths, this.#end);
    this.#end = 'died';
    if (this.#standby !== undefined) return true;
    // No backoff after the first death.
    await clock.sleep(delayMs(restartBackoff, this.#deaths - 1), this.#stop.signal);
    return true;
  }

  #whyEnded(): string {
    if (this.#end === 'hung') return 'It did not answer any more and was killed.';
    return lastErrorInLog(this.#what.logFile, this.#logStart) ?? this.#lastExit ?? 'It ended without an error in its log.';
  }

  /** From the hello of a process to the end of its last successor. */
  async #follow(first: Greeting): Promise<void> {
    for (let current: Greeting | undefined = first; current !== undefined;) {
      const { identity } = current;
      this.#greeting = current;
      this.#silent = undefined;
      this.#standby = undefined;
      this.#deps.onUp(identity);
      this.#cancelRenewal = this.#renewIfOld(current);
      const watched = { ...watchedOf(identity), heartbeats: current.heartbeats };
      const cancelWatch = watchForHang(watched, this.#deps.clock, () => this.#killHung(identity));
      await current.closed;
      this.#cancelRenewal();
      cancelWatch();
      this.#greeting = undefined;
      const standby = current.standby();
      if (standby !== undefined && isAlive(standby)) {
        // A process that hands over or ends as intended first ends its standby.
        this.#standby = standby;
        return;
      }
      current = await this.#greet();
      if (current === undefined || sameProcess(current.identity, identity)) continue;
      this.#deps.log.info({ process: this.#what.name, pid: current.identity.pid }, 'a process handed over');
      this.#former = [...this.#former.filter(isAlive), identity];
      this.#mayBeOld = this.#isRenewed;
      this.#isRenewed = false;
    }
  }

  /** Asks a found process to make room for one of this version and configuration. Call the result to stop asking. */
  #renewIfOld(greeting: Greeting): CancelTimer {
    const { desired, renewal, name } = this.#what;
    const { identity, version, socket } = greeting;
    if (!this.#isOld(greeting)) return () => undefined;
    this.#deps.log.info({ process: name, version, desired: desired.version }, 'a process is renewed');
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

  #isOld({ version, config }: Greeting): boolean {
    const { desired } = this.#what;
    return this.#mayBeOld && (version !== desired.version || (desired.config !== undefined && config !== desired.config));
  }

  /** The connection breaks, and the usual handling of a death follows. */
  #killHung(identity: ProcessIdentity): void {
    this.#deps.log.warn({ process: this.#what.name, pid: identity.pid }, 'a process hangs; it is killed');
    this.#end = 'hung';
    signalProcess(identity, 'SIGKILL');
  }

  /** A known process has more time for its hello while it waits for a CPU. */
  async #greet(limit = this.#stop.signal): Promise<Greeting | undefined> {
    const { clock } = this.#deps;
    const known = this.#silent;
    const over = new AbortController();
    const cancel = known === undefined ? undefined : watchForHang(watchedOf(known), clock, () => over.abort());
    const timeoutMs = known === undefined ? hangMs : longestHelloMs;
    try {
      return await greet(this.#what.socketPath, { clock, timeoutMs, signal: AbortSignal.any([limit, over.signal]) });
    } finally {
      cancel?.();
    }
  }

  async #startAndGreet(): Promise<Greeting | undefined> {
    const { clock } = this.#deps;
    const standby = this.#standby;
    this.#standby = undefined;
    // The process lives but sends no hello: it hangs, or its socket is gone. Two of a kind must never run side by side.
    if (this.#silent !== undefined) await endProcess(this.#silent, this.#what.renewal === 'hand-over' ? silentGraceMs : 0, clock);
    if (this.#stop.signal.aborted) return undefined;
    const isStarting = standby !== undefined && isAlive(standby);
    if (isStarting) this.#silent = standby;
    this.#mayBeOld = isStarting;
    const { hasExited, kill } = isStarting ? { hasExited: () => !isAlive(standby), kill: () => undefined } : this.#spawn();
    const over = new AbortController();
    const limit = AbortSignal.any([this.#stop.signal, over.signal]);
    const limitMs = isStarting ? standbyTimeoutMs : hangMs;
    const cancel =
      this.#silent === undefined
        ? clock.after(longestHelloMs, () => over.abort())
        : watchForHang(watchedOf(this.#silent), clock, () => over.abort(), limitMs);
    try {
      while (!limit.aborted) {
        const greeting = await this.#greet(limit);
        if (greeting !== undefined) {
          // Another process was quicker, such as the standby of a balancer that no supervisor knew.
          if (this.#silent !== undefined && !sameProcess(this.#silent, greeting.identity)) await endProcess(this.#silent, 0, clock);
          return greeting;
        }
        if (hasExited()) return undefined;
        await clock.sleep(pollMs, limit);
      }
      // Without an identity, nothing else would find it.
      if (over.signal.aborted && this.#silent === undefined) kill();
      return undefined;
    } finally {
      cancel();
    }
  }

  #spawn(): { readonly hasExited: () => boolean; readonly kill: () => void } {
    const log = openLog(this.#what.logFile);
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
        this.#lastExit = code === null ? `It was ended by ${signal}.` : `It ended with exit code ${code}.`;
        this.#deps.log.info({ process: this.#what.name, code, signal }, 'a process ended');
      });
      child.unref();
      this.#silent = child.pid === undefined ? undefined : identifyProcess(child.pid);
      return { hasExited: () => hasExited, kill: () => void child.kill('SIGKILL') };
    } finally {
      closeSync(log);
    }
  }
}

/** Without heartbeats: until its hello, a process sends none. */
function watchedOf({ pid }: ProcessIdentity): Watched {
  return { heartbeats: () => 0, waitedMs: () => cpuWaitMs(pid), isStopped: () => isStopped(pid) };
}

interface EndOptions {
  readonly clock: Clock;
  readonly greetMs: number;
  /** Between SIGTERM and SIGKILL, ms. */
  readonly graceMs: number;
  /** File with the process's identity: a stopped or hung process sends no hello, and would act after it resumes. */
  readonly identityFile?: string;
}

/** Ends the process that answers on a socket, if there is one. */
export async function endAt(socketPath: string, { clock, greetMs, graceMs, identityFile }: EndOptions): Promise<void> {
  const greeting = await greet(socketPath, { clock, timeoutMs: greetMs });
  greeting?.socket.destroy();
  const written = identityFile === undefined ? undefined : readIdentity(identityFile);
  const all = greeting === undefined && written !== undefined ? [written] : allOf(greeting);
  await Promise.all(all.map((one) => endProcess(one, graceMs, clock)));
}

/** A process and what would follow it, in the order in which to end them. */
function allOf(greeting: Greeting | undefined): readonly ProcessIdentity[] {
  return greeting === undefined ? [] : [greeting.standby(), greeting.identity].filter((one) => one !== undefined);
}

/** SIGTERM, after `graceMs` SIGKILL. Settles when exactly that process is gone. */
async function endProcess(identity: ProcessIdentity, graceMs: number, clock: Clock): Promise<void> {
  if (!signalProcess(identity, graceMs > 0 ? 'SIGTERM' : 'SIGKILL')) return;
  const deadline = clock.monotonic() + graceMs;
  while (isAlive(identity)) {
    if (clock.monotonic() >= deadline) signalProcess(identity, 'SIGKILL');
    await clock.sleep(pollMs);
  }
}
