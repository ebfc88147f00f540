import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { writeFileAtomic } from '../../shared/atomic-file.ts';
import type { Clock } from '../../shared/clock.ts';
import { readJsonFile } from '../../shared/parse-json.ts';
import { identifyProcess, isAlive, isProcessIdentity, signalProcess, type ProcessIdentity } from '../../shared/process-identity.ts';
import { randomHex } from '../../shared/random-hex.ts';
import { unlessAborted } from '../../shared/unless-aborted.ts';
import { claimSocket, isListenedOn } from '../../shared/claim-socket.ts';
import type { ConnectionFiles, Lane } from './connection-files.ts';
import { prepareKnownHosts } from './host-keys.ts';
import { connectError, missingKeyError } from './ssh-errors.ts';
import { runSsh, type SshOutcome } from './ssh-process.ts';
import { baseOptions, destination, hostKeyOptions, settings, type SshTarget } from './ssh-target.ts';

/** For all of a connection: name, way, keys, login. */
const startTimeoutMs = 30_000;

/** The process that holds a connection answers at once, or it hangs. */
const controlTimeoutMs = 3_000;

/** Idle for so long, without a request over a forward either, a connection ends. Every process that uses it keeps it awake. Seconds. */
const persistS = 3_600;

/** What the client side of ssh is told besides the command: it must go through the connection there is, and never open another. */
export function clientOptions(control: string): readonly string[] {
  return ['-F', 'none', '-S', control, ...settings('ControlMaster=no', 'ProxyCommand=false', 'BatchMode=yes', 'LogLevel=ERROR')];
}

/**
 * One connection to a machine, held by an ssh of its own in the background (`ControlMaster`). It outlives this process, and every process of the
 * same home uses the same one. Whoever finds it gone or hanging makes a new one.
 */
export class SshMaster {
  readonly control: string;
  readonly #files: ConnectionFiles;
  readonly #target: SshTarget;
  readonly #clock: Clock;
  #starting: Promise<void> | undefined;

  constructor(files: ConnectionFiles, target: SshTarget, lane: Lane, clock: Clock) {
    this.control = files.control(lane);
    this.#files = files;
    this.#target = target;
    this.#clock = clock;
  }

  /** Makes the connection unless it is there. Throws SVC_SSH, SVC_CREDENTIALS or SVC_HOST_KEY. */
  async ensure(signal?: AbortSignal): Promise<void> {
    if (await isListenedOn(this.control)) return;
    signal?.throwIfAborted();
    // Shared by all who wait: one of them giving up must not end it for the others.
    this.#starting ??= this.#start().finally(() => (this.#starting = undefined));
    await unlessAborted(this.#starting, signal);
  }

  /** Tells this connection from the one before and the next one; undefined while there is none. No process is asked. */
  incarnation(): string | undefined {
    const holder = this.#readHolder();
    if (holder === undefined || !isAlive(holder)) return undefined;
    const inode = statSync(this.control, { throwIfNoEntry: false })?.ino;
    return inode === undefined ? undefined : `${holder.pid}.${holder.startTicks}.${inode}`;
  }

  /** Whether its holder answers. One that hangs is ended, so that the next call makes a new one. */
  async answers(signal?: AbortSignal): Promise<boolean> {
    const { exitCode } = await this.ask(['-O', 'check'], signal);
    if (exitCode === undefined) this.#kill();
    return exitCode === 0;
  }

  /** Ends a connection whose holder hangs. */
  async endIfHung(): Promise<void> {
    await this.answers();
  }

  /** Ends the connection with everything that uses it. */
  async end(): Promise<void> {
    if (existsSync(this.control) && (await this.ask(['-O', 'exit'])).exitCode === undefined) this.#kill();
    this.#forget();
  }

  /** Runs ssh with the given options against the process that holds the connection. */
  ask(options: readonly string[], signal?: AbortSignal): Promise<SshOutcome> {
    const args = [...clientOptions(this.control), ...options, 'machine'];
    return runSsh(args, { userConfig: false, timeoutMs: controlTimeoutMs, clock: this.#clock, signal });
  }

  async #start(): Promise<void> {
    const { identityFile, userConfig } = this.#target;
    if (identityFile !== undefined && !existsSync(identityFile)) throw missingKeyError(this.#target);
    mkdirSync(this.#files.socketDir, { recursive: true, mode: 0o700 });
    prepareKnownHosts(this.#files, this.#target);
    // Several processes may do this at once. Each makes a connection under a name of its own; the first to give it the common name wins.
    const own = `${this.control}.${randomHex(4)}`;
    const args = [
      ...baseOptions(this.#target),
      ...hostKeyOptions(this.#target, this.#files.knownHosts, this.#files.alias),
      ...settings('ControlMaster=yes', `ControlPath=${own.replaceAll('%', '%%')}`, `ControlPersist=${persistS}`),
      // Of the files that forwards make here.
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
    const value = readJsonFile(`${this.control}.pid`)?.value;
    return isProcessIdentity(value) ? value : undefined;
  }
}
