import { regionsOf } from '../../catalog/price-table.ts';
import type { PriceTables } from '../../catalog/price-tables.ts';
import { SvcError } from '../../shared/errors.ts';
import { hasTags, type ListedMachine, type RegionsOptions } from '../provider.ts';
import type { VmDriver } from './driver.ts';
import type { HomeIdentities, HomeIdentity } from './home-identity.ts';
import type { NamedIntents } from '../intent-log.ts';
import type { MachineIds } from './machine-id.ts';
import type { MachineView } from './machine-view.ts';
import { callersTags, ownTags, readTags, sharedTags, writeTags, type Tags } from './tags.ts';

/** The region to list for a machine of a region: the main one, if one list covers the account. */
export function areaOf({ traits }: Pick<VmDriver, 'traits'>, region: string): string {
  return traits.listCovers === 'account' ? traits.mainRegion : region;
}

interface InventoryParts {
  readonly driver: VmDriver;
  readonly ids: MachineIds;
  readonly identities: HomeIdentities;
  /** Regions in which this home may have machines. */
  readonly regions: NamedIntents;
  readonly view: MachineView;
  readonly tables: PriceTables;
}

type RegionWork<T> = (region: string) => Promise<T>;

/** Finds a home's resources by its tag, in regions with an intent. A lost controller's may be in any region. */
export class Inventory {
  readonly #parts: InventoryParts;

  constructor(parts: InventoryParts) {
    this.#parts = parts;
  }

  async list(tags: Tags, options: RegionsOptions): Promise<readonly ListedMachine[]> {
    const { identities, regions, view } = this.#parts;
    const controller = this.#controller(tags['svc-owner']);
    const identity = controller ?? identities.existing();
    // A home without an identity has never sent a request.
    if (identity === undefined) return [];
    const list: RegionWork<readonly ListedMachine[]> = (region) => this.#listRegion(region, identity, tags, options.signal);
    const found =
      controller === undefined
        ? await this.#inRegions(regions.names(), 'list machines in', options, list)
        : await this.#inAllRegions('list machines in', options.signal, list);
    const listed = new Map(found.flat().map((machine) => [machine.id, machine]));
    for (const made of view.justMade(tags)) if (!listed.has(made.id)) listed.set(made.id, made);
    return [...listed.values()].filter(({ id }) => !view.isRemoved(id));
  }

  /** Includes all resources of a controller with this key. */
  async release(ownerKey: string, options: RegionsOptions): Promise<void> {
    const { driver, identities, regions } = this.#parts;
    const { signal } = options;
    const identity = identities.existing();
    if (identity === undefined) return;
    await this.#inRegions(regions.names(), `remove what belongs to ${ownerKey} in`, options, (region) =>
      driver.releaseShared(region, { home: identity.id, owner: ownerKey }, signal),
    );
    const controller = this.#controller(ownerKey);
    if (controller !== undefined) {
      await this.#inAllRegions(`remove what the controller ${ownerKey} made in`, signal, (region) =>
        driver.releaseShared(region, { home: controller.id, owner: undefined }, signal),
      );
      identities.forgetController(ownerKey);
    }
    await driver.errors.guard(`remove what ${ownerKey} has outside regions`, signal, async () => driver.releaseGlobal?.(ownerKey, signal));
  }

  #controller(key: string | undefined): Pick<HomeIdentity, 'id'> | undefined {
    return key === undefined ? undefined : this.#parts.identities.controllerIdentity(key);
  }

  async #listRegion(
    region: string,
    { id: home }: Pick<HomeIdentity, 'id'>,
    tags: Tags,
    signal: AbortSignal | undefined,
  ): Promise<readonly ListedMachine[]> {
    const { driver, ids } = this.#parts;
    const { labels, usualUser } = driver.traits;
    const requiredTags = { ...sharedTags(home, undefined), ...tags };
    const machines = await driver.list(region, { tags: writeTags(requiredTags, labels), isLiving: true }, signal);
    return machines.flatMap((machine): ListedMachine[] => {
      const its = readTags(machine.tags, labels);
      if (machine.status.state === 'gone' || !hasTags(its, requiredTags)) return [];
      return [{ id: ids.of({ ...machine, user: its[ownTags.user] ?? usualUser }), tags: callersTags(its) }];
    });
  }

  /**
   * Throws the first failure after all regions have ended. With `onDenied` it skips regions that deny access, unless all
   * do: then the credentials are bad.
   */
  async #inRegions<T>(
    regions: readonly string[],
    doing: string,
    { signal, onDenied }: RegionsOptions,
    work: RegionWork<T>,
  ): Promise<readonly T[]> {
    const { driver } = this.#parts;
    const areas = [...new Set(regions.map((region) => areaOf(driver, region)))];
    const results = await Promise.allSettled(areas.map((region) => driver.errors.guard(`${doing} ${region}`, signal, () => work(region))));
    const failures = results.flatMap((result): unknown[] => (result.status === 'rejected' ? [result.reason] : []));
    const refused = failures.filter(isDenied);
    const denied = onDenied === undefined || refused.length === results.length ? [] : refused;
    if (failures.length > denied.length) throw failures.find((error) => denied.length === 0 || !isDenied(error));
    for (const error of denied) onDenied?.(error);
    return results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  }

  /** A lost controller's regions are unknown. A region that denies access denied its launch too. */
  async #inAllRegions<T>(doing: string, signal: AbortSignal | undefined, work: RegionWork<T>): Promise<readonly T[]> {
    const { driver, tables } = this.#parts;
    const [table, settings] = await Promise.all([tables.table(driver.name), driver.settings()]);
    const regions = [...(table === undefined ? [] : regionsOf(table)), ...(settings.regions ?? []), driver.traits.mainRegion];
    return this.#inRegions(regions, doing, { ...(signal !== undefined && { signal }), onDenied: () => undefined }, work);
  }
}

/** The account has not enabled the region, or the account's organisation denies it. */
function isDenied(error: unknown): error is SvcError {
  return error instanceof SvcError && (error.code === 'SVC_DENIED' || error.code === 'SVC_CREDENTIALS');
}
