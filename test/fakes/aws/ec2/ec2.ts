import { newId, pick, type Emulation, type Range } from '../core/emulation.ts';
import type { MachineHost } from '../machine-host.ts';
import { ApiError } from '../wire/api-error.ts';
import { AddressPool } from './addresses.ts';
import { Ec2Region } from './region.ts';
import type { InstanceTypeData } from './instance-type-data.ts';
import type { RegionData } from './region-data.ts';
import { covers, Supply, whereIs, type Occupant, type SupplyScope } from './supply.ts';
import type { Resource } from './records.ts';

/** How EC2 finds out what an instance profile is; false when there is none that it can see yet. */
export type ProfileLookup = (nameOrArn: string) => string | undefined;

/** What EC2 is made of. */
export interface Ec2Parts {
  readonly emulation: Emulation;
  readonly regions: readonly RegionData[];
  readonly types: readonly InstanceTypeData[];
  readonly host: MachineHost | undefined;
  readonly profileArn: ProfileLookup;
}

/** The emulated EC2 of one account, all regions. */
export class Ec2 {
  readonly emulation: Emulation;
  readonly host: MachineHost | undefined;
  readonly profileArn: ProfileLookup;
  readonly types: ReadonlyMap<string, InstanceTypeData>;
  readonly regions: ReadonlyMap<string, Ec2Region>;
  readonly supply: Supply;
  /** On loopback, so that whatever is tried with an address of an instance that is no real machine stays here. */
  readonly publicAddresses = new AddressPool('127.64.0.1');

  readonly #pending: { readonly scope: SupplyScope; readonly range: Range }[] = [];

  constructor(parts: Ec2Parts) {
    this.emulation = parts.emulation;
    this.host = parts.host;
    this.profileArn = parts.profileArn;
    this.types = new Map(parts.types.map((type) => [type.name, type]));
    this.regions = new Map(parts.regions.map((data) => [data.name, new Ec2Region(data, (prefix) => this.id(prefix))]));
    this.supply = new Supply(this.emulation.random);
  }

  get now(): number {
    return this.emulation.clock.now();
  }

  region(name: string): Ec2Region {
    const region = this.regions.get(name);
    if (region === undefined) throw new ApiError('AuthFailure', 'AWS was not able to validate the provided access credentials', 401);
    return region;
  }

  type(name: string): InstanceTypeData {
    const type = this.types.get(name);
    if (type === undefined) throw new ApiError('InvalidParameterValue', `Invalid value '${name}' for InstanceType.`, 400);
    return type;
  }

  id(prefix: string): string {
    return newId(prefix, this.emulation.random);
  }

  /** When reads begin to see something new. */
  visibleAt(kind: keyof Emulation['timing']['invisibleMs']): number {
    return this.now + this.pick(this.emulation.timing.invisibleMs[kind]);
  }

  isVisible(resource: Resource): boolean {
    return resource.visibleAt <= this.now;
  }

  /** From now on machines of that kind and place take so long to come up, whatever the others take. */
  setPending(scope: SupplyScope, range: Range): void {
    this.#pending.unshift({ scope, range });
  }

  /** How long a machine takes to come up, ms; another time each time. */
  pendingMs(instance: Occupant): number {
    const own = this.#pending.find(({ scope }) => covers(scope, whereIs(instance)));
    return this.pick(own?.range ?? this.emulation.timing.pendingMs);
  }

  pick(range: Range): number {
    return pick(range, this.emulation.random);
  }
}
