import { readdirSync } from 'node:fs';
import type { Emulation, Range } from './core/emulation.ts';
import type { Ec2 } from './ec2/ec2.ts';
import { interrupt, ownShutdown, recommendRebalance, spotTermination, stop, terminate, userShutdown } from './ec2/instance-life.ts';
import { visibleTags } from './ec2/filters.ts';
import type { GroupRecord, InstanceRecord, KeyRecord, SpotRequestRecord, VolumeRecord } from './ec2/records.ts';
import type { Ec2Region } from './ec2/region.ts';
import type { Supply, SupplyScope } from './ec2/supply.ts';
import { createImds, type ImdsResponder, type ImdsRole } from './imds.ts';
import type { Iam, ProfileRecord, RoleRecord } from './iam/iam.ts';
import type { BucketRecord, BucketStore } from './s3/buckets.ts';
import type { AccessKey, KeyRing } from './sigv4/key-ring.ts';
import { newSession } from './sts/actions.ts';

/**
 * A resource of the account that costs money or blocks the removal of another one. None may remain after a service is
 * removed.
 */
export interface Leftover {
  readonly kind: 'instance' | 'volume' | 'group' | 'key' | 'spot-request' | 'role' | 'profile' | 'bucket' | 'upload';
  readonly region: string;
  readonly id: string;
  readonly tags: Readonly<Record<string, string>>;
}

function named(kind: 'role' | 'profile', one: RoleRecord | ProfileRecord): Leftover {
  return { kind, region: '', id: one.name, tags: Object.fromEntries(one.tags) };
}

/**
 * Actions and observations of a test outside the API: as AWS itself, or as a person in the console. It sees changes
 * without delay.
 */
export class Control {
  readonly #emulation: Emulation;
  readonly #ec2: Ec2;
  readonly #iam: Iam;
  readonly #buckets: BucketStore;
  readonly #disabled: Set<string>;

  constructor(emulation: Emulation, ec2: Ec2, iam: Iam, buckets: BucketStore, disabled: Set<string>) {
    this.#emulation = emulation;
    this.#ec2 = ec2;
    this.#iam = iam;
    this.#buckets = buckets;
    this.#disabled = disabled;
  }

  /** Machine supply: capacity, quotas, spot prices, types that are not offered. */
  get supply(): Supply {
    return this.#ec2.supply;
  }

  /** The valid access keys. */
  get keys(): KeyRing {
    return this.#emulation.keys;
  }

  region(name: string): Ec2Region {
    return this.#ec2.region(name);
  }

  /** All instances ever launched, of all regions, in order of creation. */
  get instances(): readonly InstanceRecord[] {
    return this.#all((region) => region.instances);
  }

  get volumes(): readonly VolumeRecord[] {
    return this.#all((region) => region.volumes);
  }

  /** Without the default groups, which always exist. */
  get groups(): readonly GroupRecord[] {
    return this.#all((region) => region.groups).filter(({ name }) => name !== 'default');
  }

  get keyPairs(): readonly KeyRecord[] {
    return this.#all((region) => region.keys);
  }

  get spotRequests(): readonly SpotRequestRecord[] {
    return this.#all((region) => region.spotRequests);
  }

  get roles(): readonly RoleRecord[] {
    return [...this.#iam.roles.values()];
  }

  get profiles(): readonly ProfileRecord[] {
    return [...this.#iam.profiles.values()];
  }

  get buckets(): readonly BucketRecord[] {
    return [...this.#buckets.buckets.values()];
  }

  /** Files on disk that hold the larger bodies. */
  storedFiles(): readonly string[] {
    return readdirSync(this.#buckets.folder);
  }

  /** Registers a bucket's name for another account. */
  takeBucketName(name: string): void {
    this.#buckets.namesOfOtherAccounts.add(name);
  }

  /** All resources of the account that did not exist at the start. Instances count until they are terminated. */
  leftovers(): readonly Leftover[] {
    const regional = [...this.#ec2.regions.values()].flatMap((region): readonly Leftover[] => [
      ...[...region.instances.values()]
        .filter(({ state }) => state !== 'terminated')
        .map((one) => this.#leftover('instance', region.name, one)),
      ...[...region.volumes.values()].map((one) => this.#leftover('volume', region.name, one)),
      ...[...region.groups.values()].filter(({ name }) => name !== 'default').map((one) => this.#leftover('group', region.name, one)),
      ...[...region.keys.values()].map((one) => this.#leftover('key', region.name, one)),
      ...[...region.spotRequests.values()]
        .filter(({ state }) => state === 'open' || state === 'active')
        .map((one) => this.#leftover('spot-request', region.name, one)),
    ]);
    const stored = this.buckets.flatMap((bucket): readonly Leftover[] => [
      { kind: 'bucket', region: bucket.region, id: bucket.name, tags: Object.fromEntries(bucket.tags) },
      ...[...bucket.uploads.values()].map((upload) => ({
        kind: 'upload' as const,
        region: bucket.region,
        id: `${bucket.name}/${upload.key}`,
        tags: {},
      })),
    ]);
    return [
      ...regional,
      ...this.roles.map((role) => named('role', role)),
      ...this.profiles.map((profile) => named('profile', profile)),
      ...stored,
    ];
  }

  /** Returns the instance of that id in any region. */
  instance(id: string): InstanceRecord {
    const found = this.instances.find((one) => one.id === id);
    if (found === undefined) throw new Error(`there is no instance ${id}`);
    return found;
  }

  /** Sets the boot time, ms, of later machines in that scope. */
  setPending(scope: SupplyScope, range: Range): void {
    this.#ec2.setPending(scope, range);
  }

  /**
   * Makes AWS accept machines in that scope and terminate each before it runs, with that `StateReason`. The returned
   * function ends the effect. Source of the codes:
   * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StateReason.html
   */
  failLaunches(scope: SupplyScope, code: string, message: string, afterMs: Range = [0, 0]): () => void {
    return this.#ec2.failLaunches(scope, { afterMs, reason: { Code: code, Message: `${code}: ${message}` } });
  }

  /** Makes AWS accept machines in that scope and never show them. */
  loseLaunches(scope: SupplyScope): () => void {
    return this.#ec2.failLaunches(scope, { afterMs: [0, 0], reason: undefined });
  }

  /** AWS sends an interruption notice and reclaims a spot instance when the notice period is over. */
  interrupt(id: string): void {
    interrupt(this.#ec2, this.instance(id));
  }

  /** AWS reclaims a spot instance without notice, which it may do. */
  reclaim(id: string): void {
    terminate(this.#ec2, this.instance(id), spotTermination);
  }

  /** AWS sends a rebalance recommendation for an instance. */
  recommendRebalance(id: string): void {
    recommendRebalance(this.#ec2, this.instance(id));
  }

  /** A program on an instance shuts it down. The instance stops, or terminates when it was launched that way. */
  powerOff(id: string): void {
    const instance = this.instance(id);
    if (instance.shutdownBehavior === 'terminate') terminate(this.#ec2, instance, ownShutdown);
    else stop(this.#ec2, instance, ownShutdown);
  }

  /** A person terminates an instance in the console. */
  terminate(id: string): void {
    terminate(this.#ec2, this.instance(id), userShutdown);
  }

  /**
   * Starts the metadata service (169.254.169.254) of that instance. Call it once for each instance, because it
   * remembers the tokens it issued.
   */
  imds(id: string): ImdsResponder {
    const instance = this.instance(id);
    const key = [...this.region(instance.region).keys.values()].find(({ name }) => name === instance.keyName);
    let session: ReturnType<typeof newSession> | undefined;
    const role = (): ImdsRole | undefined => {
      const profile = this.profiles.find(({ arn }) => arn === instance.instanceProfileArn);
      if (profile?.roleName === undefined) return undefined;
      // Renewed well before expiry, as AWS does.
      if (session === undefined || session.expiresAt - this.#ec2.now < 900_000)
        session = newSession(this.#emulation, profile.roleName, id, 21_600);
      return { name: profile.roleName, ...session };
    };
    return createImds({ clock: this.#emulation.clock, instance, publicKey: key?.publicKey, role });
  }

  /** A person enables or disables a region. */
  setRegionEnabled(name: string, enabled: boolean): void {
    if (enabled) this.#disabled.delete(name);
    else this.#disabled.add(name);
  }

  /** A temporary key, as SSO and roles issue it. */
  newSession(seconds: number, roleName = 'tester'): AccessKey & { readonly sessionToken: string; readonly expiresAt: number } {
    return newSession(this.#emulation, roleName, 'session', seconds);
  }

  #leftover(kind: Leftover['kind'], region: string, one: { readonly id: string; readonly tags: InstanceRecord['tags'] }): Leftover {
    return { kind, region, id: one.id, tags: Object.fromEntries(visibleTags(one, Number.POSITIVE_INFINITY)) };
  }

  #all<Kept>(of: (region: Ec2Region) => ReadonlyMap<string, Kept>): readonly Kept[] {
    return [...this.#ec2.regions.values()].flatMap((region) => [...of(region).values()]);
  }
}
