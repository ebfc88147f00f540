import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { writeFileAtomic, readJsonFile } from '../../shared/system/files.ts';
import { delayMs, type Backoff } from '../../shared/backoff.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { isObject } from '../../shared/json.ts';
import type { TunnelFiles } from './connection-files.ts';
import { connectError } from './ssh-errors.ts';
import type { SshMachine } from './ssh-machine.ts';
import type { SshMaster } from './ssh-master.ts';

/** A local socket file and its end on the machine: `localhost:PORT` or the path of a socket. */
interface SshTunnel {
  readonly socket: string;
  readonly to: string;
}

/** The content of the record file. */
interface TunnelsRecord {
  readonly ways: readonly SshTunnel[];
  /** The connection that has all of these forwards. */
  readonly addedTo: string;
}

/** Poll interval for whether the forwards still work, ms. Each poll makes two file system checks. */
const pollIntervalMs = 1_000;

/** Polls between two checks of the process that holds the connection. The checks also keep it from ending as idle. */
const pollsPerHungCheck = 30;

/** Connections in a row that may end while forwards are added to them. */
const addAttempts = 3;

/** Between two attempts to reach a machine that does not answer. */
const reconnect: Backoff = { firstMs: 1_000, longestMs: 10_000 };

/** Dependencies of the forwards on the machine. */
interface TunnelMachine extends Pick<SshMachine, 'files' | 'target'> {
  master(lane: 'f'): TunnelMaster;
}

/** Operations of the connection that the forwards use. */
export type TunnelMaster = Pick<SshMaster, 'answers' | 'ask' | 'endIfHung' | 'ensure' | 'incarnation'>;

/**
 * The forwards to one machine's ports: local socket files, held open by the ssh of the machine's connection for
 * forwards. The socket paths never change. When any process opens a new connection, the forwards are added to it under
 * the same paths. A record on disk lists the forwards, so that processes that work on the machine after a restart keep
 * them as well.
 */
export class SshTunnels {
  readonly #files: TunnelFiles;
  readonly #machine: () => Promise<TunnelMachine>;
  readonly #clock: Clock;
  #keeper: CancelTimer | undefined;
  #isBusy = false;
  #polls = 0;
  #failures = 0;
  #retryAt = 0;

  constructor(files: TunnelFiles, machine: () => Promise<TunnelMachine>, clock: Clock) {
    this.#files = files;
    this.#machine = machine;
    this.#clock = clock;
  }

  /** Opens a forward and keeps it open while this process lives. The path is the same each time. */
  async open(destination: number | string, signal?: AbortSignal): Promise<string> {
    const tunnel: SshTunnel = {
      socket: this.#files.socket(destination),
      to: typeof destination === 'number' ? `localhost:${destination}` : destination,
    };
    const { ways: tunnels } = this.#read() ?? emptyRecord;
    if (!tunnels.some(({ socket }) => socket === tunnel.socket)) this.#write({ ways: [...tunnels, tunnel], addedTo: '' });
    await this.#add(signal);
    this.keep();
    return tunnel.socket;
  }

  /** Keeps the forwards that an earlier process opened, if there are any. Cheap. */
  keep(): void {
    if (this.#keeper !== undefined || !existsSync(this.#files.record)) return;
    this.#keeper = this.#clock.every(pollIntervalMs, () => void this.#poll());
    void this.#poll();
  }

  /** Closes all forwards permanently. */
  async close(): Promise<void> {
    const { ways: tunnels } = this.#read() ?? emptyRecord;
    rmSync(this.#files.record, { force: true });
    this.#stop();
    const { master } = await this.#forwards();
    await this.#cancel(master, tunnels);
  }

  async #cancel(master: TunnelMaster, tunnels: readonly SshTunnel[]): Promise<void> {
    for (const tunnel of tunnels) {
      if (master.incarnation() !== undefined) await master.ask(['-O', 'cancel', '-L', forwardOf(tunnel)]);
      rmSync(tunnel.socket, { force: true });
    }
  }

  #stop(): void {
    this.#keeper?.();
    this.#keeper = undefined;
  }

  async #poll(): Promise<void> {
    if (this.#isBusy || this.#clock.monotonic() < this.#retryAt) return;
    this.#isBusy = true;
    try {
      const record = this.#read();
      // Closed, perhaps by another process.
      if (record === undefined) return this.#stop();
      const { master } = await this.#forwards();
      this.#polls = (this.#polls + 1) % pollsPerHungCheck;
      if (this.#polls === 0) await master.endIfHung();
      if (!isGood(record, master.incarnation())) await this.#add();
      this.#failures = 0;
    } catch {
      // The machine does not answer. A process that works on it gets the error; this poll only retries.
      this.#failures += 1;
      this.#retryAt = this.#clock.monotonic() + delayMs(reconnect, this.#failures);
    } finally {
      this.#isBusy = false;
    }
    return undefined;
  }

  /**
   * Adds the forwards. A connection that ends meanwhile (the machine was rebooted) is opened again, or the error of
   * that attempt is thrown.
   */
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

  async #addTo(machine: TunnelMachine, master: TunnelMaster, signal: AbortSignal | undefined): Promise<void> {
    const incarnation = master.incarnation();
    const record = this.#read();
    // Another process may have closed the forwards. Recreating the record would make this process look for a terminated
    // machine without end.
    if (record === undefined || isGood(record, incarnation)) return;
    mkdirSync(machine.files.socketDir, { recursive: true, mode: 0o700 });
    for (const tunnel of record.ways) {
      // First cancels a forward that this connection already has: its socket file may be gone.
      if (!existsSync(tunnel.socket)) await master.ask(['-O', 'cancel', '-L', forwardOf(tunnel)], signal);
      const { exitCode, said } = await master.ask(['-O', 'forward', '-L', forwardOf(tunnel)], signal);
      if (exitCode !== 0) throw connectError(machine.files, machine.target, said || 'no tunnel to its ports could be opened');
    }
    const latest = this.#read();
    if (latest === undefined) return this.#cancel(master, record.ways);
    // Another process may have opened one meanwhile. Then the next poll adds it.
    const { ways: tunnels } = latest;
    this.#write({ ways: tunnels, addedTo: tunnels.length === record.ways.length ? (incarnation ?? '') : '' });
  }

  async #forwards(): Promise<{ readonly machine: TunnelMachine; readonly master: TunnelMaster }> {
    const machine = await this.#machine();
    return { machine, master: machine.master('f') };
  }

  /** Undefined when there never were any forwards, or they were closed. */
  #read(): TunnelsRecord | undefined {
    const value = readJsonFile(this.#files.record)?.value;
    if (!isObject(value) || !Array.isArray(value['ways']) || typeof value['addedTo'] !== 'string') return undefined;
    return { ways: value['ways'].filter(isTunnel), addedTo: value['addedTo'] };
  }

  #write(record: TunnelsRecord): void {
    writeFileAtomic(this.#files.record, JSON.stringify(record));
  }
}

const emptyRecord: TunnelsRecord = { ways: [], addedTo: '' };

function isTunnel(value: unknown): value is SshTunnel {
  return isObject(value) && typeof value['socket'] === 'string' && typeof value['to'] === 'string';
}

function isGood({ ways: tunnels, addedTo }: TunnelsRecord, incarnation: string | undefined): boolean {
  return incarnation !== undefined && incarnation === addedTo && tunnels.every(({ socket }) => existsSync(socket));
}

/** Formats the argument of `-L`: colons separate its fields, and percent signs start fields of their own. */
function forwardOf({ socket, to }: SshTunnel): string {
  return `${quotedPath(socket)}:${to.startsWith('/') ? quotedPath(to) : to}`;
}

function quotedPath(path: string): string {
  return path.replaceAll('%', '%%').replaceAll('\\', '\\\\').replaceAll(':', '\\:');
}

const allTunnels = new Map<string, SshTunnels>();

/** The forwards of one machine: one instance for all its remotes in this process. */
export function sshTunnels(files: TunnelFiles, machine: () => Promise<TunnelMachine>, clock: Clock): SshTunnels {
  const known = allTunnels.get(files.record);
  if (known !== undefined) return known;
  const tunnels = new SshTunnels(files, machine, clock);
  allTunnels.set(files.record, tunnels);
  return tunnels;
}
