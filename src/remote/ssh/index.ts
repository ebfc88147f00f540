import { rmSync } from 'node:fs';
import type { Clock } from '../../shared/clock.ts';
import type { HomePaths } from '../../shared/paths.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import type { CopyToOptions, RemoteCallOptions } from '../remote.ts';
import { copyToMachine } from '../session/copy.ts';
import { SessionRemote } from '../session/session-remote.ts';
import { wayFiles } from './connection-files.ts';
import { directHost, isOpen } from './direct-address.ts';
import { rsyncTo } from './rsync-copy.ts';
import { sshMachine, type SshMachine } from './ssh-machine.ts';
import type { SshTarget } from './ssh-target.ts';
import { sshWays, type SshWays } from './ways.ts';

export type { SshTarget } from './ssh-target.ts';

/** How the machine's ports are reached. */
export interface SshAddressSettings {
  /**
   * `always`: by TCP, for who knows that the port is open to us. `auto` (default): by TCP when somebody accepts there at that moment, else by a
   * forward, which works in any case. `never`: by a forward.
   */
  readonly direct?: 'auto' | 'always' | 'never';
  /**
   * Where a port of the replica is found on the machine: at a port there (default: the same one), or behind a socket that asks for the port as
   * `src/node/forwarder.mjs` does, given by its absolute path.
   */
  readonly wayIn?: (port: number) => { readonly hostPort: number } | { readonly socket: string };
}

/** What a remote over SSH is made from. */
export interface SshRemoteSettings {
  /** Where the machine is; asked when it is needed and again later, as a machine in a cloud gets its address late and may change it. */
  readonly target: () => Promise<SshTarget>;
  readonly baseDir: string;
  readonly enter: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly address?: SshAddressSettings;
  readonly paths: HomePaths;
  readonly clock: Clock;
}

/** How long a target is taken for what it was, ms. */
const targetMs = 10_000;

/**
 * A machine reached by the system's own ssh. All remotes of one home share a few connections for each machine; docs/internals/ssh.md tells how.
 * Besides what `Remote` says: SVC_SSH when the machine does not answer (it may later), SVC_CREDENTIALS when it does not let us in, SVC_HOST_KEY when it
 * is not the one it was, SVC_NO_SPACE when its disk is full, SVC_PLACE_FAILED when its files could not be worked with.
 */
export class SshRemote extends SessionRemote {
  readonly #settings: SshRemoteSettings;
  #target: { readonly at: number; readonly target: Promise<SshTarget> } | undefined;

  constructor(settings: SshRemoteSettings) {
    super(settings);
    this.#settings = settings;
  }

  override async copyTo(localDir: string, remoteDir: string, options: CopyToOptions = {}): Promise<void> {
    const machine = await this.work();
    await copyToMachine(machine, localDir, remoteDir, options, async (isFolder) => {
      if (machine.hasRsync !== false) machine.hasRsync = await rsyncTo(machine, localDir, remoteDir, { ...options, isFolder });
      return machine.hasRsync;
    });
  }

  async address(port: number, { signal }: RemoteCallOptions = {}): Promise<ReplicaAddress> {
    const { address: { direct = 'auto', wayIn } = {}, clock } = this.#settings;
    const target = await this.#currentTarget();
    const ways = this.#ways(target);
    const way = wayIn?.(port) ?? { hostPort: port };
    if ('socket' in way) return { kind: 'unix', path: await ways.open(way.socket, signal), port };
    const { hostPort } = way;
    const host = direct === 'never' ? undefined : await directHost(target, clock);
    if (host !== undefined && (direct === 'always' || (await isOpen(host, hostPort, clock)))) return { kind: 'tcp', host, port: hostPort };
    return { kind: 'forward', path: await ways.open(hostPort, signal), port: hostPort };
  }

  async forwardSocket(remotePath: string, { signal }: RemoteCallOptions = {}): Promise<string> {
    return this.#ways(await this.#currentTarget()).open(remotePath, signal);
  }

  /** Whether the machine answers and lets us in; throws what `exec` would. */
  async connect({ signal }: RemoteCallOptions = {}): Promise<void> {
    await (await this.work()).master('x').ensure(signal);
  }

  /** Closes the ways to the machine's ports for good: for a machine that is given back. The connections, which others may use, stay. */
  async close(): Promise<void> {
    await this.#ways(await this.#currentTarget()).close();
  }

  /** Closes everything and forgets the machine's host key: for a machine that never comes back. */
  async forget(): Promise<void> {
    await this.close();
    const machine = await this.#machine();
    await machine.end();
    rmSync(machine.files.knownHosts, { force: true });
  }

  /** The machine to work on; whoever works on it also keeps the ways to its ports. */
  protected async work(): Promise<SshMachine> {
    const target = await this.#currentTarget();
    this.#ways(target).keep();
    return sshMachine(target, this.#settings.paths, this.#settings.clock);
  }

  async #machine(): Promise<SshMachine> {
    return sshMachine(await this.#currentTarget(), this.#settings.paths, this.#settings.clock);
  }

  #ways(target: SshTarget): SshWays {
    return sshWays(wayFiles(this.#settings.paths, [target.name, this.baseDir]), () => this.#machine(), this.#settings.clock);
  }

  #currentTarget(): Promise<SshTarget> {
    const now = this.#settings.clock.monotonic();
    if (this.#target === undefined || now - this.#target.at > targetMs) {
      const target = this.#settings.target();
      this.#target = { at: now, target };
      // One that could not be told is asked for again by the next call.
      target.catch(() => (this.#target = undefined));
    }
    return this.#target.target;
  }
}

/** Ends all connections to a target, those of other processes with them: for a controller that ends for good. */
export async function endSshConnections(target: SshTarget, paths: HomePaths, clock: Clock): Promise<void> {
  await sshMachine(target, paths, clock).end();
}
