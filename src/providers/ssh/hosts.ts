import type { SshHost, SshPool } from '../../domain/config.ts';
import type { Clock } from '../../shared/clock.ts';
import { Host } from './host.ts';
import type { MachineInventory } from './machine-inventory.ts';
import { hostRemote, type OpenRemote } from './remotes.ts';

interface HostsSource {
  readonly pools: () => Promise<readonly SshPool[]>;
  readonly inventory: MachineInventory;
  readonly open: OpenRemote;
  readonly clock: Clock;
}

/** One of the SSH hosts by name. */
export function hostNamed(hosts: readonly Host[], pool: string, name: string): Host | undefined {
  return hosts.find((one) => one.pool === pool && one.config.host === name);
}

/** The SSH hosts of all pools, and those with machines that are in no pool any more. Each keeps its known state. */
export class Hosts {
  readonly #source: HostsSource;
  readonly #hosts = new Map<string, Host>();

  constructor(source: HostsSource) {
    this.#source = source;
  }

  pools(): Promise<readonly SshPool[]> {
    return this.#source.pools();
  }

  /** In the order of the pools file. Throws what reading the pools throws. */
  async inPools(): Promise<readonly Host[]> {
    const pools = await this.#source.pools();
    return pools.flatMap(({ name, hosts }) => hosts.map((host) => this.#host(name, host)));
  }

  /** Includes SSH hosts with machines of this home, even when the pools file cannot be read. */
  async all(): Promise<readonly Host[]> {
    const inPools = await this.inPools().catch((): readonly Host[] => []);
    const others = this.#source.inventory.list().map(({ pool, host }) => this.#known(pool, host.host) ?? this.#host(pool, host));
    return [...new Set([...inPools, ...others])];
  }

  /** Undefined when it is neither in a pool nor has a machine of this home. */
  async find(pool: string, name: string): Promise<Host | undefined> {
    return hostNamed(await this.all(), pool, name);
  }

  #known(pool: string, name: string): Host | undefined {
    return this.#hosts.get(JSON.stringify([pool, name]));
  }

  /** Drops the known state when the connection settings have changed. */
  #host(pool: string, host: SshHost): Host {
    const known = this.#known(pool, host.host);
    if (known !== undefined && JSON.stringify(known.config) === JSON.stringify(host)) return known;
    const { open, clock } = this.#source;
    const created = new Host({ pool, host, clock, remote: hostRemote(open, pool, host) });
    this.#hosts.set(JSON.stringify([pool, host.host]), created);
    return created;
  }
}
