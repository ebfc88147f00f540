import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { writeFileAtomic } from '../../shared/system/files.ts';
import type { Clock } from '../../shared/clock.ts';
import { identifyProcess, isAlive, readIdentity, signalProcess, type ProcessIdentity } from '../../shared/system/process-identity.ts';
import { randomHex } from '../../shared/hex.ts';
import { unlessAborted } from '../../shared/deadline.ts';
import { claimSocket, isListenedOn } from '../../shared/system/claim-socket.ts';
import type { ConnectionFiles, Lane } from './connection-files.ts';
import { prepareKnownHosts } from './host-keys.ts';
import { SvcError } from '../../shared/errors.ts';
import { connectError, missingKeyError } from './ssh-errors.ts';
import { runSsh, type SshOutcome } from './ssh-process.ts';
import { baseOptions, destination, hostKeyOptions, settings, type SshTarget } from './ssh-target.ts';

/** Covers the name, the route, the keys and the login. */
const startTimeoutMs = 30_000;

/** The process that holds a connection answers at once, unless it hangs. */
const controlTimeoutMs = 3_000;

/**
 * Seconds without sessions and forwarded requests after which a connection ends. Forwards also carry requests while no
 * controller keeps them awake, and few may come. The other connections open again within a second. They end soon after
 * the last use of a machine, however its users ended.
 */
const persistS = (lane: Lane): number => (lane === 'f' ? 3_600 : 60);

/** Options for client ssh processes: they must use the existing connection and never open another. */
export function clientOptions(control: string): readonly string[] {
  return ['-F', 'none', '-S', control, ...settings('ControlMaster=no', 'ProxyCommand=false', 'BatchMode=yes', 'LogLevel=ERROR')];
}

/**
 * Called when a machine does not answer. Repairs the way to it if it can, as by opening a firewall. Returns whether a
 * second attempt may succeed. Never throws.
 */
export type Repair = () => Promise<boolean>;

/**
 * A connection to a machine, held by a background ssh process (`ControlMaster`). It outlives this process. All
 * processes of a home share it, and replace it when it is gone or hangs.
 */
export class SshMaster {
  readonly control: string;
  readonly #files: ConnectionFiles;
  readonly #target: SshTarget;
  readonly #clock: Clock;
  readonly #lane: Lane;
  readonly #repair: Repair;
  #starting: Promise<void> | undefined;

  constructor(files: ConnectionFiles, target: SshTarget, lane: Lane, clock: Clock, repair: Repair) {
    this.control = files.control(lane);
    this.#files = files;
    this.#target = target;
    this.#clock = clock;
    this.#lane = lane;
    this.#repair = repair;
  }

  /** Opens a missing connection. Throws SVC_SSH, SVC_CREDENTIALS or SVC_HOST_KEY. */
  async ensure(signal?: AbortSignal): Promise<void> {
    if (await isListenedOn(this.control)) return;
    signal?.throwIfAborted();
    // The callers share this start: one caller's abort must not end it for the others.
    this.#starting ??= this.#startOrRepair().finally(() => (this.#starting = undefined));
    await unlessAborted(this.#starting, signal);
  }

  /** Differs between successive connections; undefined while there is none. Starts no process. */
  incarnation(): string | undefined {
    const holder = this.#readHolder();
    if (holder === undefined || !isAlive(holder)) return undefined;
    const inode = statSync(this.control, { throwIfNoEntry: false })?.ino;
    return inode === undefined ? undefined : `${holder.pid}.${holder.startTicks}.${inode}`;
  }

  /** Whether the holder answers. A hanging holder is killed: the next call opens a new connection. */
  async answers(signal?: AbortSignal): Promise<boolean> {
    const { exitCode } = await this.ask(['-O', 'check'], signal);
    if (exitCode === undefined) this.#kill();
    return exitCode === 0;
  }

  async endIfHung(): Promise<void> {
    await this.answers();
  }

  async end(): Promise<void> {
    if (existsSync(this.control) && (await this.ask(['-O', 'exit'])).exitCode === undefined) this.#kill();
    this.#forget();
  }

  /** Lets the connection end with the last request that it carries now. The next call opens a new one. */
  async retire(): Promise<void> {
    if (existsSync(this.control)) await this.ask(['-O', 'stop']);
    this.#forget();
  }

  ask(options: readonly string[], signal?: AbortSignal): Promise<SshOutcome> {
    const args = [...clientOptions(this.control), ...options, 'machine'];
    return runSsh(args, { userConfig: false, timeoutMs: controlTimeoutMs, clock: this.#clock, signal });
  }

  async #startOrRepair(): Promise<void> {
    try {
      await this.#start();
    } catch (error) {
      const isSilent = error instanceof SvcError && error.code === 'SVC_SSH';
      if (!isSilent || !(await this.#repair())) throw error;
      await this.#start();
    }
  }

  async #start(): Promise<void> {
    const { identityFile, userConfig } = this.#target;
    if (identityFile !== undefined && !existsSync(identityFile)) throw missingKeyError(this.#target);
    mkdirSync(this.#files.socketDir, { recursive: true, mode: 0o700 });
    prepareKnownHosts(this.#files, this.#target);
    // Several processes may start at once, each under a private name. The first to claim the common name wins.
    const own = `${this.control}.${randomHex(4)}`;
    const args = [
      ...baseOptions(this.#target),
      ...hostKeyOptions(this.#target, this.#files.knownHosts, this.#files.alias),
      ...settings('ControlMaster=yes', `ControlPath=${own.replaceAll('%', '%%')}`, `ControlPersist=${persistS(this.#lane)}`),
      // For the local sockets of forwards.
      ...settings('StreamLocalBindUnlink=yes', 'StreamLocalBindMask=0177'),
      '-TNf',
      ...destination(this.#target, this.#files.knownHosts),
    ];
    const { exitCode, said } = await runSsh(args, { userConfig, timeoutMs: startTimeoutMs, clock: this.#clock });
    if (exitCode !== 0) {
      rmSync(own, { force: true });
      const reason = exitCode === undefined ? `nothing came within ${startTimeoutMs / 1_000} s` : said;
      throw connectError(this.#files, this.#target, reason);
    }
    await this.#publish(own);
  }

  async #publish(own: string): Promise<void> {
    const options = { userConfig: false, timeoutMs: controlTimeoutMs, clock: this.#clock };
    const { said } = await runSsh([...clientOptions(own), '-O', 'check', 'machine'], options);
    const holder = identifyProcess(Number(/pid=(\d+)/.exec(said)?.[1] ?? 0));
    if (!(await claimSocket(own, this.control))) await runSsh([...clientOptions(own), '-O', 'exit', 'machine'], options);
    else if (holder !== undefined) writeFileAtomic(`${this.control}.pid`, JSON.stringify(holder));
    rmSync(own, { force: true });
  }

  #kill(): void {
    const holder = this.#readHolder();
    if (holder !== undefined) signalProcess(holder, 'SIGKILL');
    this.#forget();
  }

  #forget(): void {
    rmSync(this.control, { force: true });
    rmSync(`${this.control}.pid`, { force: true });
  }

  #readHolder(): ProcessIdentity | undefined {
    return readIdentity(`${this.control}.pid`);
  }
}
