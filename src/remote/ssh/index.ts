import { rmSync } from 'node:fs';
import type { Clock } from '../../shared/clock.ts';
import type { HomePaths } from '../../shared/paths.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import { groupMemoryKills, limitCommand } from '../isolation/limits.ts';
import { machineConnections } from '../tcp-table.ts';
import type { AddressOptions, CopyToOptions, MemoryKills, RemoteCallOptions } from '../remote.ts';
import type { Tunnels } from '../tunnels.ts';
import { copyToMachine } from '../session/copy.ts';
import { SessionRemote } from '../session/session-remote.ts';
import { rsyncTo } from './rsync-copy.ts';
import { type SshMachine, sshMachine } from './ssh-machine.ts';
import type { Repair } from './ssh-master.ts';
import type { SshTarget } from './ssh-target.ts';
import { sshTunnels } from './forwards.ts';
import { DialError, dialReplica } from '../../shared/system/dial.ts';
import { runSsh } from './ssh-process.ts';

export type { SshTarget } from './ssh-target.ts';

/** The route to a machine's ports. */
export interface SshAddressSettings {
  /**
   * `always`: by TCP, if the caller knows that the port is open to this machine. `auto` (default): by TCP if a program
   * accepts connections now, else by a forward, which always works. `never`: by a forward.
   */
  readonly direct?: 'auto' | 'always' | 'never';
  /**
   * Where the replica's port ends on the machine: another port, or the absolute path of a socket that expects the port
   * number as `src/node/forwarder.mjs` does. Default: the same port.
   */
  readonly ingress?: (port: number) => { readonly hostPort: number } | { readonly socket: string };
}

interface SshRemoteSettings {
  /** Called again: a cloud machine gets its address late, and the address may change. */
  readonly target: () => Promise<SshTarget>;
  readonly baseDir: string;
  readonly enter: readonly string[];
  /** The machine's folder with `limits.sh`. Absent: nothing bounds its programs. */
  readonly limitsDir?: string | undefined;
  readonly environment: Readonly<Record<string, string>>;
  readonly address?: SshAddressSettings;
  /** Called when the machine does not answer. Absent: nothing can be repaired. */
  readonly repair?: Repair;
  readonly paths: HomePaths;
  readonly clock: Clock;
}

/** Lifetime of a cached target, ms. */
const targetMs = 10_000;

/**
 * A machine reached through the system's ssh. All remotes of one home share a few connections per machine
 * (docs/internals/ssh.md). Besides the errors of `Remote`:
 * - SVC_SSH: the machine does not answer (it may later).
 * - SVC_CREDENTIALS: it refuses the login.
 * - SVC_HOST_KEY: its host key has changed.
 * - SVC_NO_SPACE: its disk is full.
 * - SVC_PLACE_FAILED: work on its files failed.
 */
export class SshRemote extends SessionRemote {
  readonly #settings: SshRemoteSettings;
  #target: { readonly at: number; readonly target: Promise<SshTarget> } | undefined;

  constructor(settings: SshRemoteSettings) {
    super({ ...settings, limit: limitCommand(settings.limitsDir) });
    this.#settings = settings;
  }

  override async copyTo(localDir: string, remoteDir: string, options: CopyToOptions = {}): Promise<void> {
    const machine = await this.work();
    await copyToMachine(machine, localDir, remoteDir, options, async (isFolder) => {
      if (machine.hasRsync !== false) machine.hasRsync = await rsyncTo(machine, localDir, remoteDir, { ...options, isFolder });
      return machine.hasRsync;
    });
  }

  async address(port: number, { signal, isolated = true }: AddressOptions = {}): Promise<ReplicaAddress> {
    const { address: { direct = 'auto', ingress: ingressOf } = {}, clock } = this.#settings;
    const target = await this.#currentTarget();
    const tunnels = this.#tunnels(target);
    const ingress = (isolated ? ingressOf?.(port) : undefined) ?? { hostPort: port };
    if ('socket' in ingress) return { kind: 'unix', path: await tunnels.open(ingress.socket, signal), port };
    const { hostPort } = ingress;
    const host = direct === 'never' ? undefined : await directHost(target, clock);
    if (host !== undefined && (direct === 'always' || (await isOpen(host, hostPort, clock)))) return { kind: 'tcp', host, port: hostPort };
    return { kind: 'forward', path: await tunnels.open(hostPort, signal), port: hostPort };
  }

  async forwardSocket(remotePath: string, { signal }: RemoteCallOptions = {}): Promise<string> {
    return this.#tunnels(await this.#currentTarget()).open(remotePath, signal);
  }

  async readText(remotePath: string): Promise<string | undefined> {
    return (await this.work()).reader.read(remotePath);
  }

  memoryKills(): Promise<MemoryKills | undefined> {
    return groupMemoryKills(this, this.#settings.limitsDir);
  }

  connections(options: RemoteCallOptions = {}): Promise<string> {
    return machineConnections(this, this.#settings.limitsDir, options);
  }

  /** Checks that the machine answers and accepts the login. Throws what `exec` would. */
  async connect({ signal }: RemoteCallOptions = {}): Promise<void> {
    await (await this.work()).master('x').ensure(signal);
  }

  /** Closes the forwards permanently, for a machine that is being terminated. Connections stay: others may use them. */
  async close(): Promise<void> {
    await this.#tunnels(await this.#currentTarget()).close();
  }

  /** Closes everything and removes the host key, for a machine that never comes back. */
  async forget(): Promise<void> {
    await this.close();
    const machine = await this.#machine();
    await machine.end();
    rmSync(machine.files.knownHosts, { force: true });
  }

  /** Each call also keeps the forwards open. */
  protected async work(): Promise<SshMachine> {
    const target = await this.#currentTarget();
    this.#tunnels(target).keep();
    return this.#machineAt(target);
  }

  async #machine(): Promise<SshMachine> {
    return this.#machineAt(await this.#currentTarget());
  }

  #machineAt(target: SshTarget): SshMachine {
    const { paths, clock, repair } = this.#settings;
    const machine = sshMachine(target, paths, clock);
    machine.repair = repair ?? machine.repair;
    return machine;
  }

  #tunnels(target: SshTarget): Tunnels {
    const { paths, clock } = this.#settings;
    return sshTunnels(paths, [target.name, this.baseDir], { machine: () => this.#machine(), clock });
  }

  #currentTarget(): Promise<SshTarget> {
    const now = this.#settings.clock.monotonic();
    if (this.#target === undefined || now - this.#target.at > targetMs) {
      const target = this.#settings.target();
      this.#target = { at: now, target };
      target.catch(() => (this.#target = undefined));
    }
    return this.#target.target;
  }
}

/** Ends all connections to a target, also other processes' ones, for a controller that ends permanently. */
export async function endSshConnections(target: SshTarget, paths: HomePaths, clock: Clock): Promise<void> {
  await sshMachine(target, paths, clock).end();
}

/** ms: five round trips over an ocean. */
const dialTimeoutMs = 1_500;

const configTimeoutMs = 5_000;

/** The host for a connection without SSH: an alias resolved by the user's configuration. Undefined with a jump host. */
async function directHost(target: SshTarget, clock: Clock): Promise<string | undefined> {
  if (target.proxyJump !== undefined) return undefined;
  if (!target.userConfig) return target.host;
  const { said, exitCode } = await runSsh(['-G', '--', target.host], { userConfig: true, timeoutMs: configTimeoutMs, clock });
  if (exitCode !== 0 || /^proxy(?:jump|command) (?!none)/m.test(said)) return undefined;
  return /^hostname (.+)$/m.exec(said)?.[1] ?? target.host;
}

async function isOpen(host: string, port: number, clock: Clock): Promise<boolean> {
  try {
    (await dialReplica({ kind: 'tcp', host, port }, { timeoutMs: dialTimeoutMs, clock })).destroy();
    return true;
  } catch (error) {
    if (error instanceof DialError) return false;
    throw error;
  }
}
