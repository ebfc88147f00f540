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

/** Something in the account that costs money or is in the way: what must be gone when a service is. */
export interface Leftover {
  readonly kind: 'instance' | 'volume' | 'group' | 'key' | 'spot-request' | 'role' | 'profile' | 'bucket' | 'upload';
  readonly region: string;
  readonly id: string;
  readonly tags: Readonly<Record<string, string>>;
}

function named(kind: 'role' | 'profile', one: RoleRecord | ProfileRecord): Leftover {
  return { kind, region: '', id: one.name, tags: Object.fromEntries(one.tags) };
}

/** What a test does and sees beside the API: as AWS itself, or as a person in the console. It sees everything at once. */
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

  /** What there is of machines: capacity, quotas, prices of spot, types that are not offered. */
  get supply(): Supply {
    return this.#ec2.supply;
  }

  /** The access keys that work. */
  get keys(): KeyRing {
    return this.#emulation.keys;
  }

  region(name: string): Ec2Region {
    return this.#ec2.region(name);
  }

  /** All instances that ever were, of all regions, in order of creation. */
  get instances(): readonly InstanceRecord[] {
    return this.#all((region) => region.instances);
  }

  get volumes(): readonly VolumeRecord[] {
    return this.#all((region) => region.volumes);
  }

  /** Without the default groups, which are always there. */
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

  /** Takes a bucket's name for another account. */
  takeBucketName(name: string): void {
    this.#buckets.takenElsewhere.add(name);
  }

  /** All that is in the account and was not there at the beginning. Instances count until they are terminated. */
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

  /** The instance of that id in whichever region. */
  instance(id: string): InstanceRecord {
    const found = this.instances.find((one) => one.id === id);
    if (found === undefined) throw new Error(`there is no instance ${id}`);
    return found;
  }

  /** From now on machines of that kind and place come up within that time, ms. */
  setPending(scope: SupplyScope, range: Range): void {
    this.#ec2.setPending(scope, range);
  }

  /** AWS gives notice and takes a spot instance when the time of the notice is over. */
  interrupt(id: string): void {
    interrupt(this.#ec2, this.instance(id));
  }

  /** AWS takes a spot instance without notice, as it may. */
  reclaim(id: string): void {
    terminate(this.#ec2, this.instance(id), spotTermination);
  }

  /** AWS says that it is likely to take an instance. */
  recommendRebalance(id: string): void {
    recommendRebalance(this.#ec2, this.instance(id));
  }

  /** A program on an instance shuts it down: it stops, or is terminated when it was launched so. */
  powerOff(id: string): void {
    const instance = this.instance(id);
    if (instance.shutdownBehavior === 'terminate') terminate(this.#ec2, instance, ownShutdown);
    else stop(this.#ec2, instance, ownShutdown);
  }

  /** A person terminates an instance in the console. */
  terminate(id: string): void {
    terminate(this.#ec2, this.instance(id), userShutdown);
  }

  /** What answers on that instance at 169.254.169.254; ask once for each instance, as it remembers the tokens it gave. */
  imds(id: string): ImdsResponder {
    const instance = this.instance(id);
    const key = [...this.region(instance.region).keys.values()].find(({ name }) => name === instance.keyName);
    let session: ReturnType<typeof newSession> | undefined;
    const role = (): ImdsRole | undefined => {
      const profile = this.profiles.find(({ arn }) => arn === instance.instanceProfileArn);
      if (profile?.roleName === undefined) return undefined;
      // Renewed well before the end, as AWS does.
      if (session === undefined || session.expiresAt - this.#ec2.now < 900_000)
        session = newSession(this.#emulation, profile.roleName, id, 21_600);
      return { name: profile.roleName, ...session };
    };
    return createImds({ clock: this.#emulation.clock, instance, publicKey: key?.publicKey, role });
  }

  /** A person enables a region, or disables it. */
  setRegionEnabled(name: string, enabled: boolean): void {
    if (enabled) this.#disabled.delete(name);
    else this.#disabled.add(name);
  }

  /** A temporary key, as SSO and roles give it. */
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
