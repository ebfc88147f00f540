import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import { shortFingerprint } from '../../shared/hex.ts';
import { getOrAdd } from '../../shared/get-or-add.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { TunnelRecords, type Tunnel, type TunnelEnd } from '../tunnel-records.ts';
import { TunnelKeeper, Tunnels, type TunnelCarrier } from '../tunnels.ts';
import { connectError } from './ssh-errors.ts';
import type { SshMachine } from './ssh-machine.ts';
import type { SshMaster } from './ssh-master.ts';

/** The connection that has all forwards of a record; empty: none has. */
interface SshRoute {
  readonly addedTo: string;
}

const addAttempts = 3;

interface ForwardsMachine extends Pick<SshMachine, 'files' | 'target'> {
  master(lane: 'f'): ForwardsMaster;
}

/** What forwards need of a connection. */
export type ForwardsMaster = Pick<SshMaster, 'answers' | 'ask' | 'endIfHung' | 'ensure' | 'incarnation' | 'retire'>;

/** Unique: several machines may share an SSH host. */
type MachineId = readonly [name: string, baseDir: string];

/**
 * Carries a machine's tunnels as forwards of one ssh connection. When any process opens a new connection, it gets the
 * forwards under the same paths.
 */
export class SshForwards implements TunnelCarrier<SshRoute> {
  readonly records: TunnelRecords<SshRoute>;
  readonly name: string;
  readonly newRoute: SshRoute = { addedTo: '' };
  readonly keeper: TunnelKeeper;
  readonly #machine: () => Promise<ForwardsMachine>;

  constructor(paths: HomePaths, id: MachineId, machine: () => Promise<ForwardsMachine>, clock: Clock) {
    this.records = new TunnelRecords({
      dir: join(paths.sshDir, 'ways'),
      socketDir: join(paths.runtimeDir, 's'),
      readRoute: ({ addedTo }) => (typeof addedTo === 'string' ? { addedTo } : undefined),
    });
    this.name = shortFingerprint(id);
    this.keeper = new TunnelKeeper(this, clock);
    this.#machine = machine;
  }

  endOf(to: TunnelEnd): string {
    return typeof to === 'number' ? `localhost:${to}` : to;
  }

  hasTunnels(): boolean {
    return this.records.read(this.name) !== undefined;
  }

  async areUp(): Promise<boolean> {
    const machine = await this.#machine();
    return this.#areOn(machine.master('f').incarnation());
  }

  /** Adds the forwards. If the connection ends meanwhile (a reboot), opens it again or throws that attempt's error. */
  async carry(signal?: AbortSignal): Promise<void> {
    for (let left = addAttempts - 1; this.hasTunnels(); left -= 1) {
      const machine = await this.#machine();
      const master = machine.master('f');
      await master.ensure(signal);
      try {
        return await this.#addTo(machine, master, signal);
      } catch (error) {
        if (left === 0 || (await master.answers(signal))) throw error;
      }
    }
  }

  async keepAlive(): Promise<void> {
    const machine = await this.#machine();
    await machine.master('f').endIfHung();
  }

  async drop(tunnels: readonly Tunnel[]): Promise<void> {
    const machine = await this.#machine();
    const master = machine.master('f');
    await cancel(master, tunnels);
    // Machines may share an SSH host and its connection. Of a process that is adding its first forward to it, the next
    // attempt opens another one.
    const incarnation = master.incarnation();
    const isUsed = this.records.list().some((name) => this.records.read(name)?.route.addedTo === incarnation);
    if (incarnation !== undefined && !isUsed) await master.retire();
  }

  async #addTo(machine: ForwardsMachine, master: ForwardsMaster, signal: AbortSignal | undefined): Promise<void> {
    const incarnation = master.incarnation();
    const record = this.records.read(this.name);
    if (record === undefined || this.#areOn(incarnation)) return;
    mkdirSync(machine.files.socketDir, { recursive: true, mode: 0o700 });
    for (const tunnel of record.tunnels) {
      // Cancels first: the connection may have the forward without its socket file.
      if (!existsSync(tunnel.socket)) await master.ask(['-O', 'cancel', '-L', forwardOf(tunnel)], signal);
      const { exitCode, said } = await master.ask(['-O', 'forward', '-L', forwardOf(tunnel)], signal);
      if (exitCode !== 0) throw connectError(machine.files, machine.target, said || 'no tunnel to its ports could be opened');
    }
    const latest = this.records.read(this.name);
    // Another process closed the tunnels. With a new record, this process would try to reach a terminated machine
    // without end.
    if (latest === undefined) return cancel(master, record.tunnels);
    // Another process may have opened a tunnel meanwhile; the next poll adds it.
    const { tunnels } = latest;
    const addedTo = tunnels.length === record.tunnels.length ? (incarnation ?? '') : '';
    this.records.write(this.name, { tunnels, route: { addedTo } });
  }

  #areOn(incarnation: string | undefined): boolean {
    const record = this.records.read(this.name);
    return incarnation !== undefined && incarnation === record?.route.addedTo && record.tunnels.every(({ socket }) => existsSync(socket));
  }
}

async function cancel(master: ForwardsMaster, tunnels: readonly Tunnel[]): Promise<void> {
  for (const tunnel of tunnels) {
    if (master.incarnation() !== undefined) await master.ask(['-O', 'cancel', '-L', forwardOf(tunnel)]);
    rmSync(tunnel.socket, { force: true });
  }
}

/** For `-L`: colons separate fields, and percent signs start fields of their own. */
function forwardOf({ socket, to }: Tunnel): string {
  const end = String(to);
  return `${quotedPath(socket)}:${end.startsWith('/') ? quotedPath(end) : end}`;
}

function quotedPath(path: string): string {
  return path.replaceAll('%', '%%').replaceAll('\\', '\\\\').replaceAll(':', '\\:');
}

const allTunnels = new Map<string, Tunnels>();

/** One instance per machine and process. */
export function sshTunnels(
  paths: HomePaths,
  id: MachineId,
  { machine, clock }: { readonly machine: () => Promise<ForwardsMachine>; readonly clock: Clock },
): Tunnels {
  return getOrAdd(allTunnels, JSON.stringify([paths.home, id]), () => new Tunnels(new SshForwards(paths, id, machine, clock)));
}
