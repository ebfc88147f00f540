import type { SshHost, SshPool } from '../../domain/ssh-pool.ts';
import type { Clock } from '../../shared/clock.ts';
import { Host } from './host.ts';
import type { MachineIndex } from './machine-index.ts';
import { hostRemote, type OpenRemote } from './remotes.ts';

/** Where the hosts come from. */
export interface HostsSource {
  readonly pools: () => Promise<readonly SshPool[]>;
  readonly index: MachineIndex;
  readonly open: OpenRemote;
  readonly clock: Clock;
}

/** One of the given hosts by name. */
export function hostNamed(hosts: readonly Host[], pool: string, name: string): Host | undefined {
  return hosts.find((one) => one.pool === pool && one.host.host === name);
}

/** The hosts of all pools, each kept with what is known of it, and those that have machines though their pool is gone. */
export class Hosts {
  readonly #source: HostsSource;
  readonly #hosts = new Map<string, Host>();

  constructor(source: HostsSource) {
    this.#source = source;
  }

  pools(): Promise<readonly SshPool[]> {
    return this.#source.pools();
  }

  /** The hosts of the pools, in the file's order. Throws what reading the pools throws. */
  async inPools(): Promise<readonly Host[]> {
    const pools = await this.#source.pools();
    return pools.flatMap(({ name, hosts }) => hosts.map((host) => this.#host(name, host)));
  }

  /** Those, and the hosts of the machines that this home asked for. A file of pools that cannot be read hides none of the latter. */
  async all(): Promise<readonly Host[]> {
    const inPools = await this.inPools().catch((): readonly Host[] => []);
    const others = this.#source.index.list().map(({ pool, host }) => this.#known(pool, host.host) ?? this.#host(pool, host));
    return [...new Set([...inPools, ...others])];
  }

  /** A host by name; undefined when neither a pool nor a machine of ours has it. */
  async find(pool: string, name: string): Promise<Host | undefined> {
    return hostNamed(await this.all(), pool, name);
  }

  #known(pool: string, name: string): Host | undefined {
    return this.#hosts.get(JSON.stringify([pool, name]));
  }

  /** What was known of a host that is reached in another way now is of no use. */
  #host(pool: string, host: SshHost): Host {
    const known = this.#known(pool, host.host);
    if (known !== undefined && JSON.stringify(known.host) === JSON.stringify(host)) return known;
    const { open, clock } = this.#source;
    const created = new Host({ pool, host, clock, remote: hostRemote(open, pool, host) });
    this.#hosts.set(JSON.stringify([pool, host.host]), created);
    return created;
  }
}
