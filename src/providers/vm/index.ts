import { PriceTables } from '../../catalog/price-tables.ts';
import type { BucketLocation } from '../../domain/bucket-location.ts';
import type { Resources } from '../../domain/task.ts';
import type { Remote } from '../../remote/remote.ts';
import {
  hasTags,
  type CallOptions,
  type Capabilities,
  type CheckOptions,
  type ControllerTarget,
  type ListedMachine,
  type MachineId,
  type MachineSpec,
  type MachineStatus,
  type Offer,
  type OfferList,
  type OfferOptions,
  type PortableCredentials,
  type Provider,
  type ProviderCheck,
  type RegionsOptions,
} from '../provider.ts';
import { ProviderRefusal } from '../provider-refusal.ts';
import type { ProviderContext } from '../registry.ts';
import type { Launched, VmDriver, VmLaunchOrder, VmMachine, VmPower, VmRef } from './driver.ts';
import type { CloudErrors } from './errors.ts';
import { Fleet } from './fleet.ts';
import { HomeIdentities } from './home-identity.ts';
import { namedIntents, type NamedIntents } from '../intent-log.ts';
import { areaOf, Inventory } from './inventory.ts';
import { LaunchOnce, type KeyedLaunch } from './launch-once.ts';
import { MachineIds } from './machine-id.ts';
import { vmOffers } from './offers.ts';
import type { ReadinessCheck } from './readiness.ts';
import { userData } from './ssh-key.ts';
import { machineTags, ownerOf, ownTags, readTags, sharedTags, writeTags } from './tags.ts';

/** Lets tests replace the login. */
export interface VmProviderOptions {
  readonly isReady?: ReadinessCheck;
}

/** A provider for any cloud with virtual machines and SSH. The driver does what differs. */
export class VmProvider<Image = unknown> implements Provider {
  readonly name: string;
  readonly capabilities: Capabilities;
  /** Absent where the cloud has no power control. */
  readonly stop?: NonNullable<Provider['stop']>;
  readonly start?: NonNullable<Provider['start']>;
  readonly #context: ProviderContext;
  readonly #driver: VmDriver<Image>;
  readonly #errors: CloudErrors;
  readonly #ids: MachineIds;
  readonly #tables: PriceTables;
  readonly #identities: HomeIdentities;
  readonly #regions: NamedIntents;
  readonly #fleet: Fleet;
  readonly #inventory: Inventory;
  readonly #once: LaunchOnce | undefined;

  constructor(context: ProviderContext, driver: VmDriver<Image>, { isReady }: VmProviderOptions = {}) {
    const { paths, clock } = context;
    const { name, traits, power } = driver;
    this.name = name;
    this.capabilities = { multiNode: false, mountsAnywhere: true, ...driver.abilities, stopResume: power !== undefined };
    this.#context = context;
    this.#driver = driver;
    this.#errors = driver.errors;
    this.#ids = new MachineIds(driver);
    this.#tables = new PriceTables(paths.catalogDir);
    this.#identities = new HomeIdentities(paths, name);
    this.#regions = namedIntents(paths, name, 'regions');
    const shared = { driver, ids: this.#ids, identities: this.#identities };
    this.#fleet = new Fleet({ ...shared, context, isReady });
    this.#inventory = new Inventory({ ...shared, regions: this.#regions, view: this.#fleet.view, tables: this.#tables });
    this.#once = traits.once === 'lock' ? new LaunchOnce({ paths, clock, cloud: name, paceMs: traits.paceMs ?? 0 }) : undefined;
    if (power === undefined) return;
    this.stop = (id, options) => this.#switchOff(power, id, options);
    this.start = (id, options) => this.#switchOn(power, id, options);
  }

  check(options: CheckOptions): Promise<ProviderCheck> {
    options.signal?.throwIfAborted();
    return this.#driver.account(options);
  }

  async offers(resources: Resources, { signal, explain = false }: OfferOptions): Promise<OfferList> {
    signal?.throwIfAborted();
    const settings = await this.#driver.settings();
    return vmOffers(this.#driver, resources, { tables: this.#tables, settings, explain, now: this.#context.clock.now() });
  }

  async bucketLocation(region: string): Promise<BucketLocation | undefined> {
    return this.#driver.bucketLocation?.(region);
  }

  async create(offer: Offer, spec: MachineSpec, key: string, { signal }: CallOptions): Promise<MachineId> {
    signal?.throwIfAborted();
    const ref = { region: offer.region, ...(await this.#refusing(offer, signal, () => this.#launch(offer, spec, key, signal))) };
    const id = this.#ids.of(ref);
    if (this.#driver.settle !== undefined) await this.#settle(id, ref, offer, signal);
    this.#fleet.view.wasMade(id, spec.tags);
    return id;
  }

  async inspect(ids: readonly MachineId[], { signal }: CallOptions): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    signal?.throwIfAborted();
    return this.#fleet.inspect(ids, signal);
  }

  async destroy(id: MachineId, { signal }: CallOptions): Promise<void> {
    const ref = this.#ids.read(id);
    if (ref === undefined) return;
    const isJustMade = this.#fleet.view.isJustMade(id);
    await this.#errors.guard(`remove ${nameOf(ref)}`, signal, () => this.#driver.remove(ref, { isJustMade, signal }));
    this.#once?.forget(ref.instanceId);
    await this.#fleet.forget(id);
  }

  async list(tags: Readonly<Record<string, string>>, options: RegionsOptions): Promise<readonly ListedMachine[]> {
    options.signal?.throwIfAborted();
    return this.#inventory.list(tags, options);
  }

  remote(id: MachineId): Remote {
    return this.#fleet.remote(id);
  }

  async release(ownerKey: string, options: RegionsOptions): Promise<void> {
    options.signal?.throwIfAborted();
    await this.#inventory.release(ownerKey, options);
  }

  async credentials(target: ControllerTarget, { signal }: CallOptions): Promise<PortableCredentials | undefined> {
    const secret = target.key === undefined ? [] : [this.#identities.secretForController(target.key)];
    const given = await this.#errors.guard('tell the credentials', signal, async () => this.#driver.credentials?.(target, signal));
    if (given !== undefined) return { ...given, files: [...given.files, ...secret] };
    return secret.length === 0 ? undefined : { summary: 'a secret of its own', files: secret, environment: {} };
  }

  async #launch(offer: Offer, spec: MachineSpec, key: string, signal: AbortSignal | undefined): Promise<Launched> {
    const { name, title, traits } = this.#driver;
    const settings = await this.#driver.settings();
    const image = this.#driver.chooseImage(spec.imageId, offer);
    if (typeof image === 'string')
      throw new ProviderRefusal('unsupported', 'region', `${title} gives no ${offer.instanceType} in ${offer.region}: ${image}.`);
    const diskKind = (await this.#tables.disks(name)).kind(spec.diskTier);
    const identity = this.#identities.identity();
    const order: Omit<VmLaunchOrder<Image>, 'former'> = {
      offer,
      spec,
      key,
      owner: ownerOf(spec, key),
      image,
      identity,
      settings,
      userData: userData(identity.hostKey(key)),
      diskKind,
      signal,
      tags: (user) => writeTags(machineTags(spec, key, identity.id, user), traits.labels),
    };
    const launch: KeyedLaunch = {
      key,
      signal,
      find: async () => {
        const machines = await this.#machinesOf(offer.region, key, identity.id, signal);
        // Recorded after the region answered: an intent for a region that refuses access makes `list` fail.
        this.#regions.record(offer.region, true);
        return machines;
      },
      toLaunched: ({ instanceId, tags }) => ({ instanceId, user: readTags(tags, traits.labels)[ownTags.user] ?? traits.usualUser }),
      send: (former) => this.#refusing(offer, signal, () => this.#driver.launch({ ...order, former })),
    };
    if (this.#once !== undefined) return this.#once.launch(launch);
    const former = await launch.find();
    const living = former.find(({ status }) => status.state !== 'gone');
    return living === undefined ? launch.send(former) : launch.toLaunched(living);
  }

  /** Includes machines that have ended. */
  async #machinesOf(region: string, key: string, home: string, signal: AbortSignal | undefined): Promise<readonly VmMachine[]> {
    const { labels } = this.#driver.traits;
    const requiredTags = { ...sharedTags(home, undefined), [ownTags.key]: key };
    const query = { tags: writeTags(requiredTags, labels), isLiving: false };
    const machines = await this.#driver.list(areaOf(this.#driver, region), query, signal);
    return machines.filter((machine) => machine.region === region && hasTags(readTags(machine.tags, labels), requiredTags));
  }

  /** A cloud that refuses late may leave the refused machine behind. */
  async #settle(id: MachineId, ref: VmRef, offer: Offer, signal: AbortSignal | undefined): Promise<void> {
    try {
      await this.#refusing(offer, signal, async () => this.#driver.settle?.(ref, signal));
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof ProviderRefusal) await this.destroy(id, signal === undefined ? {} : { signal });
      throw error;
    }
  }

  async #refusing<T>(offer: Offer, signal: AbortSignal | undefined, call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      signal?.throwIfAborted();
      throw this.#errors.refusalOf(error, offer);
    }
  }

  async #switchOff(power: VmPower, id: MachineId, { signal }: CallOptions): Promise<void> {
    const ref = this.#ids.existing(id);
    await this.#errors.guard(`stop ${nameOf(ref)}`, signal, () => power.stop(ref, signal));
    this.#fleet.view.willChange(id);
    this.#fleet.mustAnswerAgain(id);
  }

  async #switchOn(power: VmPower, id: MachineId, { signal }: CallOptions): Promise<void> {
    const ref = this.#ids.existing(id);
    this.#fleet.mustAnswerAgain(id);
    await this.#errors.guard(`start ${nameOf(ref)}`, signal, () => power.start(ref, signal));
    this.#fleet.view.willChange(id);
  }
}

const nameOf = ({ instanceId, region }: VmRef): string => `${instanceId} in ${region}`;
