import type { Resources } from '../../domain/task.ts';
import type { Remote } from '../../remote/remote.ts';
import { effectiveConfig } from '../../remote/ssh/effective-config.ts';
import { withLateness } from '../../shared/deadline.ts';
import { SvcError, messageOf } from '../../shared/errors.ts';
import { fenced } from '../../shared/fence.ts';
import { hasTags } from '../has-tags.ts';
import { PlaceRefusal } from '../place-refusal.ts';
import type {
  CallOptions,
  ControllerTarget,
  ListedMachine,
  MachineId,
  MachineSpec,
  MachineStatus,
  Offer,
  OfferList,
  OfferOptions,
  PortableCredentials,
  Provider,
  ProviderCheck,
} from '../provider.ts';
import type { ProviderContext } from '../registry.ts';
import { checkHosts } from './check.ts';
import { createMachine } from './create-machine.ts';
import { reasonOf, type Host, type HostState } from './host.ts';
import { valueOf } from './host-reply.ts';
import { hostNamed, Hosts } from './hosts.ts';
import { IsolationCache } from './isolation-cache.ts';
import { machineId, machineName, readMachineId } from './machine-id.ts';
import { MachineIndex } from './machine-index.ts';
import type { MachineRecord } from './machine-record.ts';
import { sshOffers, type OfferingHost } from './offers.ts';
import { goneRemote, machineRemote, type OpenRemote } from './remotes.ts';
import { portablePools } from './portable-credentials.ts';
import { openSshRemotes } from './ssh-remotes.ts';

/** Offers are wanted soon: hosts that have not answered by then, ms, are left out of this search. */
const offersMs = 8_000;

/** A host that cannot be reached for so long, ms, counts as lost with its machines; until then they are taken to run. */
const lostAfterMs = 180_000;

/** A machine that was asked for and is not there so long after, ms, was never made. */
const intentAgeMs = 600_000;

/** From the kill to the last process's end, s, and what else removing takes, ms. */
const endSeconds = 30;
const destroyTimeoutMs = 120_000;

/** Machines of one's own, reached over SSH: each host of a pool is a zone, and machines are folders there whose programs are kept apart. */
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
  readonly #index: MachineIndex;
  readonly #open: OpenRemote;
  readonly #hosts: Hosts;
  readonly #isolation: IsolationCache;

  constructor(context: ProviderContext, open: OpenRemote = openSshRemotes(context.paths, context.clock)) {
    this.#context = context;
    this.#index = new MachineIndex(context.paths);
    this.#open = (settings) => fenced(open(settings), context.fence, { free: ['localPath', 'close'] });
    this.#hosts = new Hosts({ pools: context.sshPools, index: this.#index, open: this.#open, clock: context.clock });
    this.#isolation = new IsolationCache(context.paths);
  }

  async check({ signal }: CallOptions): Promise<ProviderCheck> {
    try {
      const [pools, hosts] = [await this.#hosts.pools(), await this.#hosts.inPools()];
      return await checkHosts({
        hosts,
        file: pools[0]?.file,
        ownFile: this.#context.paths.sshPools,
        hasMachines: this.#index.list().length > 0,
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
      return { pool: host.pool, host: host.host.host, hourlyUsd: host.host.hourlyUsd, state: states[index] ?? { why: 'it was not asked' } };
    });
    return sshOffers(resources, pools, hosts, explain === true);
  }

  async create(offer: Offer, spec: MachineSpec, key: string, { signal }: CallOptions): Promise<MachineId> {
    signal?.throwIfAborted();
    const name = machineName(key);
    const elsewhere = await this.#madeElsewhere(name, offer);
    if (elsewhere !== undefined) return elsewhere;
    const host = await this.#hosts.find(offer.region, offer.zone ?? '');
    if (host === undefined)
      throw new PlaceRefusal('unsupported', 'zone', `The pool '${offer.region}' has no host '${offer.zone ?? ''}' any more.`);
    const { clock, random } = this.#context;
    const isolation = (on: Host, state: HostState) => this.#isolation.usableOn(on, state);
    await createMachine({ host, name, key, offer, spec, index: this.#index, clock, random, isolation, signal });
    return machineId({ pool: host.pool, host: host.host.host, name });
  }

  async inspect(ids: readonly MachineId[], { signal }: CallOptions): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    const hosts = await this.#hosts.all();
    const statuses = await Promise.all(ids.map(async (id) => [id, await this.#inspectOne(id, hosts)] as const));
    signal?.throwIfAborted();
    return new Map(statuses);
  }

  async destroy(id: MachineId, { signal }: CallOptions): Promise<void> {
    const place = readMachineId(id);
    const host = place === undefined ? undefined : await this.#hosts.find(place.pool, place.host);
    if (place === undefined || host === undefined) return;
    signal?.throwIfAborted();
    const reply = await host.ask({ argv: ['destroy', place.name, String(endSeconds)], timeoutMs: destroyTimeoutMs, signal });
    if (valueOf(reply, 'result') !== 'gone') {
      const why = valueOf(reply, 'why') ?? 'no reason given';
      throw new SvcError('SVC_MACHINE_LOST', `The machine ${id} cannot be removed: ${why}.`, { hint: `Look at it: ssh ${place.host}` });
    }
    const made = this.#index.get(place.pool, place.host, place.name)?.record;
    if (made !== undefined) await machineRemote(this.#open, host.host, made).close?.();
    this.#index.remove(place.pool, place.host, place.name);
  }

  /**
   * What hosts that can be asked have, of those that this home made machines on or that are in a pool. Throws when one cannot be asked that may have
   * a machine with these tags: nobody must take that for "there is none".
   */
  async list(tags: Readonly<Record<string, string>>, { signal }: CallOptions): Promise<readonly ListedMachine[]> {
    const entries = this.#index.list().filter((entry) => hasTags(entry.tags, tags));
    const all = await this.#hosts.all();
    const owes = (host: Host): boolean => entries.some(({ pool, host: { host: name } }) => pool === host.pool && name === host.host.host);
    // The index names every host that was asked for machines of one replica: nobody else need be asked for them.
    const isOfOne = tags['svc-key'] !== undefined || tags['svc-replica'] !== undefined;
    const asked = isOfOne && entries.length > 0 ? all.filter(owes) : all;
    const lists = await Promise.all(asked.map((host) => this.#listHost(host, tags, owes(host))));
    signal?.throwIfAborted();
    return lists.flat();
  }

  remote(id: MachineId): Remote {
    const place = readMachineId(id);
    const entry = place === undefined ? undefined : this.#index.get(place.pool, place.host, place.name);
    return entry?.record === undefined ? goneRemote(id) : machineRemote(this.#open, entry.host, entry.record);
  }

  stop(): Promise<void> {
    return Promise.reject(new SvcError('SVC_NOT_SUPPORTED', 'Machines on hosts of your own cannot be stopped and started again.'));
  }

  start(): Promise<void> {
    return this.stop();
  }

  /** Nothing is made beside machines. */
  release(): Promise<void> {
    return Promise.resolve();
  }

  async credentials(target: ControllerTarget): Promise<PortableCredentials | undefined> {
    return portablePools(await this.#hosts.pools(), target, this.#context.clock);
  }

  /** A machine of this name that another host was asked for: one key never gives two, wherever it is asked. */
  async #madeElsewhere(name: string, offer: Offer): Promise<MachineId | undefined> {
    const others = this.#index
      .list()
      .filter((entry) => entry.name === name && !(entry.pool === offer.region && entry.host.host === offer.zone));
    for (const { pool, host } of others) {
      const known = await this.#hosts.find(pool, host.host);
      if ((await known?.lookAnew())?.machines.some((machine) => machine.name === name) === true)
        return machineId({ pool, host: host.host, name });
    }
    return undefined;
  }

  async #inspectOne(id: MachineId, hosts: readonly Host[]): Promise<MachineStatus> {
    const place = readMachineId(id);
    const host = place === undefined ? undefined : hostNamed(hosts, place.pool, place.host);
    if (place === undefined || host === undefined) return { state: 'gone', reason: 'unknown' };
    try {
      const state = await host.look();
      const record = state.machines.find(({ name }) => name === place.name);
      // What a controller has is on its disk: it goes on after the host was started anew, while programs of replicas are gone.
      if (record?.tags['svc-controller'] !== undefined) return { state: 'running', host: await this.#publicHost(host) };
      if (record !== undefined) return record.bootId === state.bootId ? { state: 'running' } : { state: 'gone', reason: 'preempted' };
      const { askedAt, record: made } = this.#index.get(place.pool, place.host, place.name) ?? {};
      // One whose answer was lost may still be in the making.
      return { state: 'gone', reason: made === undefined && askedAt === undefined ? 'unknown' : 'deleted' };
    } catch {
      // Programs go on without us: a host that is cut off for a minute has lost nothing.
      return (host.awayMs ?? 0) < lostAfterMs ? { state: 'running' } : { state: 'gone', reason: 'unknown' };
    }
  }

  /** Where others reach a host's ports. */
  async #publicHost({ host }: Host): Promise<string> {
    return (await effectiveConfig(host.host, this.#context.clock))?.hostName ?? host.host;
  }

  async #listHost(host: Host, tags: Readonly<Record<string, string>>, mayHave: boolean): Promise<readonly ListedMachine[]> {
    let state: HostState;
    try {
      state = await host.lookAnew();
    } catch (error) {
      if (!mayHave) return [];
      const hint = error instanceof SvcError ? error.hint : undefined;
      throw new SvcError('SVC_SSH', `The host ${host.name}, which has machines, cannot be asked about them: ${reasonOf(error)}.`, {
        hint,
        cause: error,
      });
    }
    const own = state.machines.filter((machine) => machine.pool === host.pool && machine.host === host.host.host);
    const found = own.filter((machine) => hasTags(machine.tags, tags));
    this.#remember(host, found, own);
    return found.map((machine) => ({ id: machineId({ pool: host.pool, host: host.host.host, name: machine.name }), tags: machine.tags }));
  }

  /** Makes the index say what the host says; what nobody asked about may be another home's. */
  #remember(host: Host, found: readonly MachineRecord[], all: readonly MachineRecord[]): void {
    const now = this.#context.clock.now();
    for (const record of found) {
      if (this.#index.get(host.pool, host.host.host, record.name)?.record?.cookie === record.cookie) continue;
      this.#index.put({ pool: host.pool, host: host.host, name: record.name, tags: record.tags, askedAt: record.createdAt, record });
    }
    for (const entry of this.#index.list()) {
      if (entry.pool !== host.pool || entry.host.host !== host.host.host || all.some(({ name }) => name === entry.name)) continue;
      if (now - entry.askedAt > intentAgeMs) this.#index.remove(entry.pool, entry.host.host, entry.name);
    }
  }
}

async function offeringState(host: Host, late: Promise<undefined>): Promise<OfferingHost['state']> {
  try {
    const state = await Promise.race([host.look(), late]);
    return state ?? { why: `it has not answered within ${offersMs / 1_000} s` };
  } catch (error) {
    return { why: error instanceof SvcError ? reasonOf(error) : messageOf(error) };
  }
}
