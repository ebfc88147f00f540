import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { writeFileAtomic } from '../../shared/atomic-file.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { isObject } from '../../shared/is-object.ts';
import { readJsonFile } from '../../shared/parse-json.ts';
import type { WayFiles } from './connection-files.ts';
import { connectError } from './ssh-errors.ts';
import type { SshMachine } from './ssh-machine.ts';
import type { SshMaster } from './ssh-master.ts';

/** A socket file here and what it leads to on the machine: `localhost:PORT` or the path of a socket. */
interface Way {
  readonly socket: string;
  readonly to: string;
}

/** What is on disk. */
interface WaysRecord {
  readonly ways: readonly Way[];
  /** The connection that all of them were added to. */
  readonly addedTo: string;
}

/** How often it is looked whether the ways still lead anywhere; this costs two looks at the file system, ms. */
const lookMs = 1_000;

/** So many looks between two questions to the process that holds the connection; they also keep it from ending as idle. */
const looksBetweenQuestions = 30;

/** How many connections in a row may end while ways are added to them. */
const addAttempts = 3;

/** Longest pause between attempts to reach a machine that is away, in looks. */
const longestPause = 10;

/** What of a machine the ways to it need. */
export interface WayMachine extends Pick<SshMachine, 'files' | 'target'> {
  master(lane: 'f'): WayMaster;
}

/** What of the connection for forwards they need. */
export type WayMaster = Pick<SshMaster, 'answers' | 'ask' | 'endIfHung' | 'ensure' | 'incarnation'>;

/**
 * The ways to one machine's ports: socket files here, held open by the ssh of the machine's connection for forwards. The files' names never change.
 * When the connection is made anew, by whomever, the ways are added to the new one under their names. Which ways there are is on disk, so that
 * whoever works on the machine after a restart keeps them as well.
 */
export class SshWays {
  readonly #files: WayFiles;
  readonly #machine: () => Promise<WayMachine>;
  readonly #clock: Clock;
  #keeper: CancelTimer | undefined;
  #isBusy = false;
  #looks = 0;
  #failures = 0;
  #pause = 0;

  constructor(files: WayFiles, machine: () => Promise<WayMachine>, clock: Clock) {
    this.#files = files;
    this.#machine = machine;
    this.#clock = clock;
  }

  /** Opens a way and keeps it open while this process lives. The path is the same each time. */
  async open(destination: number | string, signal?: AbortSignal): Promise<string> {
    const way: Way = {
      socket: this.#files.socket(destination),
      to: typeof destination === 'number' ? `localhost:${destination}` : destination,
    };
    const { ways } = this.#read() ?? nothing;
    if (!ways.some(({ socket }) => socket === way.socket)) this.#write({ ways: [...ways, way], addedTo: '' });
    await this.#add(signal);
    this.keep();
    return way.socket;
  }

  /** Goes on keeping the ways that an earlier process opened, if there are any. Cheap. */
  keep(): void {
    if (this.#keeper !== undefined || !existsSync(this.#files.record)) return;
    this.#keeper = this.#clock.every(lookMs, () => void this.#look());
    void this.#look();
  }

  /** Closes all ways for good. */
  async close(): Promise<void> {
    const { ways } = this.#read() ?? nothing;
    rmSync(this.#files.record, { force: true });
    this.#stop();
    const { master } = await this.#forwards();
    await this.#cancel(master, ways);
  }

  async #cancel(master: WayMaster, ways: readonly Way[]): Promise<void> {
    for (const way of ways) {
      if (master.incarnation() !== undefined) await master.ask(['-O', 'cancel', '-L', forwardOf(way)]);
      rmSync(way.socket, { force: true });
    }
  }

  #stop(): void {
    this.#keeper?.();
    this.#keeper = undefined;
  }

  async #look(): Promise<void> {
    if (this.#isBusy) return;
    if (this.#pause > 0) {
      this.#pause -= 1;
      return;
    }
    this.#isBusy = true;
    try {
      const record = this.#read();
      // Closed, perhaps by another process.
      if (record === undefined) return this.#stop();
      const { master } = await this.#forwards();
      this.#looks = (this.#looks + 1) % looksBetweenQuestions;
      if (this.#looks === 0) await master.endIfHung();
      if (!isGood(record, master.incarnation())) await this.#add();
      this.#failures = 0;
    } catch {
      // The machine is away: who works on it learns why. Here it is only tried again.
      this.#failures += 1;
      this.#pause = Math.min(longestPause, this.#failures);
    } finally {
      this.#isBusy = false;
    }
    return undefined;
  }

  /** Who tries again finds a connection that ended in the midst of it (its machine was started anew) made anew, or learns why it cannot be. */
  async #add(signal?: AbortSignal): Promise<void> {
    for (let left = addAttempts - 1; ; left -= 1) {
      const { machine, master } = await this.#forwards();
      await master.ensure(signal);
      try {
        return await this.#addTo(machine, master, signal);
      } catch (error) {
        if (left === 0 || (await master.answers(signal))) throw error;
      }
    }
  }

  async #addTo(machine: WayMachine, master: WayMaster, signal: AbortSignal | undefined): Promise<void> {
    const incarnation = master.incarnation();
    const record = this.#read();
    // Closed, by whomever: a record that came back would have a machine that is given back looked for without end.
    if (record === undefined || isGood(record, incarnation)) return;
    mkdirSync(machine.files.socketDir, { recursive: true, mode: 0o700 });
    for (const way of record.ways) {
      // One that this connection has is taken away first: its file may be gone.
      if (!existsSync(way.socket)) await master.ask(['-O', 'cancel', '-L', forwardOf(way)], signal);
      const { exitCode, said } = await master.ask(['-O', 'forward', '-L', forwardOf(way)], signal);
      if (exitCode !== 0) throw connectError(machine.files, machine.target, said || 'no way to its ports could be opened');
    }
    const latest = this.#read();
    if (latest === undefined) return this.#cancel(master, record.ways);
    // Another process may have opened one meanwhile; then there is one more round.
    const { ways } = latest;
    this.#write({ ways, addedTo: ways.length === record.ways.length ? (incarnation ?? '') : '' });
  }

  async #forwards(): Promise<{ readonly machine: WayMachine; readonly master: WayMaster }> {
    const machine = await this.#machine();
    return { machine, master: machine.master('f') };
  }

  /** Undefined when there never were any, or they were closed. */
  #read(): WaysRecord | undefined {
    const value = readJsonFile(this.#files.record)?.value;
    if (!isObject(value) || !Array.isArray(value['ways']) || typeof value['addedTo'] !== 'string') return undefined;
    return { ways: value['ways'].filter(isWay), addedTo: value['addedTo'] };
  }

  #write(record: WaysRecord): void {
    writeFileAtomic(this.#files.record, JSON.stringify(record));
  }
}

const nothing: WaysRecord = { ways: [], addedTo: '' };

function isWay(value: unknown): value is Way {
  return isObject(value) && typeof value['socket'] === 'string' && typeof value['to'] === 'string';
}

function isGood({ ways, addedTo }: WaysRecord, incarnation: string | undefined): boolean {
  return incarnation !== undefined && incarnation === addedTo && ways.every(({ socket }) => existsSync(socket));
}

/** As `-L` reads it: colons part its fields, and percent signs are fields of their own. */
function forwardOf({ socket, to }: Way): string {
  return `${quotedPath(socket)}:${to.startsWith('/') ? quotedPath(to) : to}`;
}

function quotedPath(path: string): string {
  return path.replaceAll('%', '%%').replaceAll('\\', '\\\\').replaceAll(':', '\\:');
}

const allWays = new Map<string, SshWays>();

/** The ways of one machine: the same for all its remotes in this process. */
export function sshWays(files: WayFiles, machine: () => Promise<WayMachine>, clock: Clock): SshWays {
  const known = allWays.get(files.record);
  if (known !== undefined) return known;
  const ways = new SshWays(files, machine, clock);
  allWays.set(files.record, ways);
  return ways;
}
