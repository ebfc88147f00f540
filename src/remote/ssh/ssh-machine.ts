import { spawn } from 'node:child_process';
import { Socket } from 'node:net';
import type { Clock } from '../../shared/clock.ts';
import type { SvcError } from '../../shared/errors.ts';
import { getOrAdd } from '../../shared/get-or-add.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { type ConnectionFiles, type Lane, connectionFiles } from './connection-files.ts';
import { type SessionCarrier, runSession } from '../session/run-session.ts';
import { Semaphore } from '../session/semaphore.ts';
import type { SessionEnd, SessionMachine, SessionOptions, SessionRequest } from '../session/session-machine.ts';
import { lostError } from './ssh-errors.ts';
import { SshMaster, clientOptions, type Repair } from './ssh-master.ts';
import { type SshTarget, sshEnvironment } from './ssh-target.ts';
import { bootCommand } from '../session/session-script.ts';
import { TextReader } from '../session/text-reader.ts';
import { noSsh } from './ssh-process.ts';

/** This process's sessions per connection. An sshd allows ten (`MaxSessions`), shared with other processes. */
const commandsAtOnce = 5;
const copiesAtOnce = 3;
const streamsPerConnection = 5;

/** Connections to try when one has no session left. */
const spareConnections = 4;

/** This process's connections to a machine, shared by all remotes. */
export class SshMachine implements SessionMachine {
  readonly target: SshTarget;
  readonly files: ConnectionFiles;
  /** Undefined before the first copy. */
  hasRsync: boolean | undefined;
  /** Of the last remote that was opened. */
  repair: Repair | undefined;
  readonly reader: TextReader;
  readonly #clock: Clock;
  readonly #masters = new Map<Lane, SshMaster>();
  readonly #slots = { x: new Semaphore(commandsAtOnce), c: new Semaphore(copiesAtOnce) };
  readonly #streams: boolean[] = [];

  constructor(target: SshTarget, paths: HomePaths, clock: Clock) {
    this.target = target;
    this.files = connectionFiles(paths, target);
    this.#clock = clock;
    this.reader = new TextReader(this, clock);
  }

  get name(): string {
    return this.target.name;
  }

  get host(): string {
    return this.target.host;
  }

  lost(what: string): SvcError {
    return lostError(this.target, what);
  }

  /** Opened on first use. */
  master(lane: Lane): SshMaster {
    const repair: Repair = async () => (await this.repair?.()) ?? false;
    return getOrAdd(this.#masters, lane, () => new SshMaster(this.files, this.target, lane, this.#clock, repair));
  }

  /** Throws SVC_SSH, SVC_CREDENTIALS or SVC_HOST_KEY when the machine could not be used. */
  async session(request: SessionRequest, options: SessionOptions): Promise<SessionEnd> {
    if (options.lane !== 'stream') {
      const lane = options.lane === 'command' ? 'x' : 'c';
      return this.#slots[lane].run(() => this.#tryLanes(lane, request, options), request.signal);
    }
    const free = this.#streams.indexOf(false);
    const slot = free < 0 ? this.#streams.length : free;
    this.#streams[slot] = true;
    try {
      return await this.#tryLanes(`s${Math.floor(slot / streamsPerConnection)}`, request, options);
    } finally {
      this.#streams[slot] = false;
    }
  }

  /** Runs a program such as rsync over the connection for copies. */
  async withCopyControl<Result>(use: (control: string) => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    const master = this.master('c');
    return this.#slots.c.run(async () => {
      await master.ensure(signal);
      return use(master.control);
    }, signal);
  }

  /** Ends all connections to the machine, also those of other processes. */
  async end(): Promise<void> {
    const lanes: readonly Lane[] = [
      'x',
      'c',
      'f',
      ...Array.from({ length: spareConnections + this.#masters.size }, (_, index): Lane => `s${index}`),
    ];
    await Promise.all(lanes.map((lane) => this.master(lane).end()));
  }

  async #tryLanes(first: Lane, request: SessionRequest, { isRepeatable }: SessionOptions): Promise<SessionEnd> {
    let lane = first;
    let repeats = 0;
    for (;;) {
      const master = this.master(lane);
      await master.ensure(request.signal);
      const end = await runSession(() => openSession(master.control, request), request, this.#clock);
      if (end.how === 'ended' || (end.how === 'timed-out' && end.isStarted)) return end;
      if (end.how === 'silent') {
        await master.endIfHung();
        throw this.lost('is silent');
      }
      if (isFull(end)) {
        const next = nextLane(lane);
        if (next === undefined) throw this.lost('is full: it takes no more sessions');
        lane = next;
        continue;
      }
      repeats += 1;
      if (repeats > 1 || !(isRepeatable || neverArrived(end))) throw this.lost(end.isStarted ? 'broke while a command ran' : 'broke');
    }
  }
}

/** Whether the sshd refused another session on this connection; then nothing has run. */
function isFull({ isStarted, said }: SessionEnd): boolean {
  return !isStarted && said.includes('Session open refused by peer');
}

/**
 * Whether ssh found no process that holds the connection, so the request was not sent. ssh then tries a direct
 * connection, which `clientOptions` makes impossible; that failure prints this text.
 */
function neverArrived({ isStarted, said }: SessionEnd): boolean {
  return !isStarted && !said.includes('mux_client') && said.includes('UNKNOWN port');
}

function nextLane(lane: Lane): Lane | undefined {
  const next = lane.startsWith('s') ? Number(lane.slice(1)) + 1 : 0;
  return next < 2 * spareConnections ? `s${next}` : undefined;
}

const machines = new Map<string, SshMachine>();

/** One instance per machine and process: all remotes share its connections and their limits. */
export function sshMachine(target: SshTarget, paths: HomePaths, clock: Clock): SshMachine {
  return getOrAdd(machines, connectionFiles(paths, target).control('x'), () => new SshMachine(target, paths, clock));
}

function openSession(control: string, { holdsProcess = true }: SessionRequest): SessionCarrier {
  const child = spawn('ssh', [...clientOptions(control), '-T', 'machine', bootCommand], { env: sshEnvironment(false), stdio: 'pipe' });
  if (!holdsProcess) {
    child.unref();
    for (const stream of child.stdio) if (stream instanceof Socket) stream.unref();
  }
  const closed = new Promise<string>((resolve, reject) => {
    child.once('error', (error) => reject(noSsh(error)));
    child.once('close', () => resolve(''));
  });
  return { stdin: child.stdin, stdout: child.stdout, stderr: child.stderr, closed, kill: () => void child.kill('SIGKILL') };
}
