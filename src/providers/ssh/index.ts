import type { Resources } from '../../domain/task.ts';
import type { Remote } from '../../remote/remote.ts';
import { effectiveConfig } from '../../remote/ssh/effective-config.ts';
import { withLateness } from '../../shared/deadline.ts';
import { SvcError, messageOf } from '../../shared/errors.ts';
import { fenced } from '../../shared/fence.ts';
import {
  hasTags,
  type CallOptions,
  type ControllerTarget,
  type ListedMachine,
  type ListOptions,
  type MachineId,
  type MachineSpec,
  type MachineStatus,
  type Offer,
  type OfferList,
  type OfferOptions,
  type PortableCredentials,
  type Provider,
  type ProviderCheck,
} from '../provider.ts';
import { ProviderRefusal } from '../provider-refusal.ts';
import type { ProviderContext } from '../registry.ts';
import { checkHosts } from './check.ts';
import { createMachine } from './create-machine.ts';
import { reasonOf, type Host, type HostState } from './host.ts';
import { valueOf } from './host-link.ts';
import { hostNamed, Hosts } from './hosts.ts';
import { IsolationCache } from './isolation.ts';
import { machineId, machineName, readMachineId, type MachineRecord } from './machine-record.ts';
import { MachineInventory } from './machine-inventory.ts';
import { sshOffers, type OfferingHost } from './offers.ts';
import { type OpenRemote, goneRemote, machineRemote, openSshRemotes } from './remotes.ts';
import { portablePools } from './portable-credentials.ts';

/** ms. A search for offers leaves out SSH hosts that have not answered by then. */
const offersMs = 8_000;

/** ms. Until then, machines of an unreachable SSH host count as running, and from then on as lost. */
const lostAfterMs = 180_000;

/** ms. A machine that does not exist this long after the request was never created. */
const intentAgeMs = 600_000;

/** Limits: from the kill to the end of the last process, s; of the whole removal, ms. */
const endSeconds = 30;
const destroyTimeoutMs = 120_000;

/** The user's own machines. An SSH host is a zone of its pool. A machine is a folder there, with isolated programs. */
export class SshProvider implements Provider {
  readonly name = 'ssh';
  readonly capabilities = {
    spot: false,
    stopResume: false,
    customImages: false,
    openPorts: true,
    multiNode: false,
    gpus: true,
    mountsAnywhere: true,
  };
  readonly #context: ProviderContext;
  readonly #inventory: MachineInventory;
  readonly #open: OpenRemote;
  readonly #hosts: Hosts;
  readonly #isolation: IsolationCache;

  constructor(context: ProviderContext, open: OpenRemote = openSshRemotes(context.paths, context.clock)) {
    this.#context = context;
    this.#inventory = new MachineInventory(context.paths);
    this.#open = (settings) => fenced(open(settings), context.fence, { free: ['localPath', 'close'] });
    this.#hosts = new Hosts({ pools: context.sshPools, inventory: this.#inventory, open: this.#open, clock: context.clock });
    this.#isolation = new IsolationCache(context.paths);
  }

  async check({ signal }: CallOptions): Promise<ProviderCheck> {
    try {
      const [pools, hosts] = [await this.#hosts.pools(), await this.#hosts.inPools()];
      return await checkHosts({
        hosts,
        file: pools[0]?.file,
        ownFile: this.#context.paths.sshPools,
        hasMachines: this.#inventory.list().length > 0,
        isolation: (host, state) => this.#isolation.kindOn(host, state),
        clock: this.#context.clock,
        signal,
      });
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      const problems = error.problems.map(({ file, line, message }) => `${file}:${line}: ${message}`);
      return { enabled: false, summary: error.message, remedies: [...problems, error.hint], details: [], sharedPorts: undefined };
    }
  }

  async offers(resources: Resources, { signal, explain }: OfferOptions): Promise<OfferList> {
    signal?.throwIfAborted();
    const { clock } = this.#context;
    const pools = await this.#hosts.pools();
    const asked = (await this.#hosts.inPools()).filter(({ pool }) => resources.region === undefined || resources.region === pool);
    const ask = (late: Promise<undefined>) => Promise.all(asked.map((host) => offeringState(host, late)));
    const states = await withLateness(clock, offersMs, ask, signal);
    const hosts = asked.map((host, index): OfferingHost => {
      return {
        pool: host.pool,
        host: host.config.host,
        hourlyUsd: host.config.hourlyUsd,
        state: states[index] ?? { why: 'it was not asked' },
      };
    });
    return sshOffers(resources, pools, hosts, explain === true);
  }

  async create(offer: Offer, spec: MachineSpec, key: string, { signal }: CallOptions): Promise<MachineId> {
    signal?.throwIfAborted();
    const name = machineName(key);
    const existing = await this.#existingOnOtherHost(name, offer);
    if (existing !== undefined) return existing;
    const host = await this.#hosts.find(offer.region, offer.zone ?? '');
    if (host === undefined)
      throw new ProviderRefusal('unsupported', 'zone', `The pool '${offer.region}' has no host '${offer.zone ?? ''}' any more.`);
    const { clock, random } = this.#context;
    const isolation = (on: Host, state: HostState) => this.#isolation.usableOn(on, state);
    await createMachine({ host, name, key, offer, spec, inventory: this.#inventory, clock, random, isolation, signal });
    return machineId({ pool: host.pool, host: host.config.host, name });
  }

  async inspect(ids: readonly MachineId[], { signal }: CallOptions): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    const hosts = await this.#hosts.all();
    const statuses = await Promise.all(ids.map(async (id) => [id, await this.#inspectOne(id, hosts)] as const));
    signal?.throwIfAborted();
    return new Map(statuses);
  }

  async destroy(id: MachineId, { signal }: CallOptions): Promise<void> {
    const ref = readMachineId(id);
    const host = ref === undefined ? undefined : await this.#hosts.find(ref.pool, ref.host);
    if (ref === undefined || host === undefined) return;
    signal?.throwIfAborted();
    const reply = await host.ask({ argv: ['destroy', ref.name, String(endSeconds)], timeoutMs: destroyTimeoutMs, signal });
    if (valueOf(reply, 'result') !== 'gone') {
      const why = valueOf(reply, 'why') ?? 'no reason given';
      throw new SvcError('SVC_MACHINE_LOST', `The machine ${id} cannot be removed: ${why}.`, { hint: `Look at it: ssh ${ref.host}` });
    }
    const made = this.#inventory.get(ref.pool, ref.host, ref.name)?.record;
    if (made !== undefined) await machineRemote(this.#open, host.config, made).close?.();
    this.#inventory.remove(ref.pool, ref.host, ref.name);
  }

  /**
   * Lists machines of the reachable SSH hosts in pools, or with machines of this home; with `requestedOnly`, only of
   * those that the inventory names. Throws when an SSH host that may have a machine with these tags cannot be asked:
   * callers must not conclude that there is none.
   */
  async list(tags: Readonly<Record<string, string>>, { signal, requestedOnly = false }: ListOptions): Promise<readonly ListedMachine[]> {
    const entries = this.#inventory.list().filter((entry) => hasTags(entry.tags, tags));
    const all = await this.#hosts.all();
    const owes = (host: Host): boolean => entries.some(({ pool, host: { host: name } }) => pool === host.pool && name === host.config.host);
    // The inventory has each SSH host that may have the replica's machine.
    const isOfOne = tags['svc-key'] !== undefined || tags['svc-replica'] !== undefined;
    const asked = requestedOnly || (isOfOne && entries.length > 0) ? all.filter(owes) : all;
    const lists = await Promise.all(asked.map((host) => this.#listHost(host, tags, owes(host))));
    signal?.throwIfAborted();
    return lists.flat();
  }

  remote(id: MachineId): Remote {
    const ref = readMachineId(id);
    const entry = ref === undefined ? undefined : this.#inventory.get(ref.pool, ref.host, ref.name);
    return entry?.record === undefined ? goneRemote(id) : machineRemote(this.#open, entry.host, entry.record);
  }

  release(): Promise<void> {
    return Promise.resolve();
  }

  async credentials(target: ControllerTarget): Promise<PortableCredentials | undefined> {
    return portablePools(await this.#hosts.pools(), target, this.#context.clock);
  }

  /** One key must never yield two machines: finds a machine of this name on another SSH host. */
  async #existingOnOtherHost(name: string, offer: Offer): Promise<MachineId | undefined> {
    const others = this.#inventory
      .list()
      .filter((entry) => entry.name === name && !(entry.pool === offer.region && entry.host.host === offer.zone));
    for (const { pool, host } of others) {
      const known = await this.#hosts.find(pool, host.host);
      if ((await known?.pollFresh())?.machines.some((machine) => machine.name === name) === true)
        return machineId({ pool, host: host.host, name });
    }
    return undefined;
  }

  async #inspectOne(id: MachineId, hosts: readonly Host[]): Promise<MachineStatus> {
    const ref = readMachineId(id);
    const host = ref === undefined ? undefined : hostNamed(hosts, ref.pool, ref.host);
    if (ref === undefined || host === undefined) return { state: 'gone', reason: 'unknown' };
    try {
      const state = await host.machines();
      const record = state.machines.find(({ name }) => name === ref.name);
      // A controller's state is on its disk: it runs again after a reboot. Replicas' programs do not.
      if (record?.tags['svc-controller'] !== undefined) return { state: 'running', host: await this.#publicHost(host) };
      if (record !== undefined) return record.bootId === state.bootId ? { state: 'running' } : { state: 'gone', reason: 'preempted' };
      const { askedAt, record: made } = this.#inventory.get(ref.pool, ref.host, ref.name) ?? {};
      // A create without a reply may still complete.
      return { state: 'gone', reason: made === undefined && askedAt === undefined ? 'unknown' : 'deleted' };
    } catch {
      // Programs continue without a connection: a short outage loses nothing.
      return (host.unreachableMs ?? 0) < lostAfterMs ? { state: 'running' } : { state: 'gone', reason: 'unknown' };
    }
  }

  async #publicHost({ config: host }: Host): Promise<string> {
    return (await effectiveConfig(host.host, this.#context.clock))?.hostName ?? host.host;
  }

  async #listHost(host: Host, tags: Readonly<Record<string, string>>, mayHave: boolean): Promise<readonly ListedMachine[]> {
    let state: HostState;
    try {
      state = await host.machinesFresh();
    } catch (error) {
      if (!mayHave) return [];
      const hint = error instanceof SvcError ? error.hint : undefined;
      throw new SvcError('SVC_SSH', `The host ${host.name}, which has machines, cannot be asked about them: ${reasonOf(error)}.`, {
        hint,
        cause: error,
      });
    }
    const own = state.machines.filter((machine) => machine.pool === host.pool && machine.host === host.config.host);
    const found = own.filter((machine) => hasTags(machine.tags, tags));
    this.#remember(host, found, own);
    return found.map((machine) => ({ id: machineId({ pool: host.pool, host: host.config.host, name: machine.name }), tags: machine.tags }));
  }

  /** Adds only machines that the caller requested: others may belong to another home. */
  #remember(host: Host, found: readonly MachineRecord[], all: readonly MachineRecord[]): void {
    const now = this.#context.clock.now();
    for (const record of found) {
      if (this.#inventory.get(host.pool, host.config.host, record.name)?.record?.cookie === record.cookie) continue;
      this.#inventory.put({ pool: host.pool, host: host.config, name: record.name, tags: record.tags, askedAt: record.createdAt, record });
    }
    for (const entry of this.#inventory.list()) {
      if (entry.pool !== host.pool || entry.host.host !== host.config.host || all.some(({ name }) => name === entry.name)) continue;
      if (now - entry.askedAt > intentAgeMs) this.#inventory.remove(entry.pool, entry.host.host, entry.name);
    }
  }
}

async function offeringState(host: Host, late: Promise<undefined>): Promise<OfferingHost['state']> {
  try {
    const state = await Promise.race([host.poll(), late]);
    return state ?? { why: `it has not answered within ${offersMs / 1_000} s` };
  } catch (error) {
    return { why: error instanceof SvcError ? reasonOf(error) : messageOf(error) };
  }
}
