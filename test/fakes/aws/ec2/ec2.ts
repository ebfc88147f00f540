import type { StateReason } from '@aws-sdk/client-ec2';
import { newId, pick, type Emulation, type Range } from '../core/emulation.ts';
import type { MachineBackend } from '../machine-backend.ts';
import { ApiError } from '../wire/api-error.ts';
import { AddressPool } from './addresses.ts';
import { Ec2Region } from './region.ts';
import type { InstanceTypeData } from './instance-type-data.ts';
import type { RegionData } from './region-data.ts';
import { covers, Supply, scopeOf, type Occupant, type SupplyScope } from './supply.ts';
import type { Resource } from './records.ts';

/** Returns the ARN of an instance profile by name or ARN; undefined when EC2 cannot see it yet. */
export type ProfileLookup = (nameOrArn: string) => string | undefined;

/** The fate of an accepted launch. Without a reason no read ever shows the instance. */
export interface LaunchFailure {
  readonly afterMs: Range;
  readonly reason: StateReason | undefined;
}

/** Dependencies of EC2. */
export interface Ec2Parts {
  readonly emulation: Emulation;
  readonly regions: readonly RegionData[];
  readonly types: readonly InstanceTypeData[];
  readonly machineBackend: MachineBackend | undefined;
  readonly profileArn: ProfileLookup;
}

/** The emulated EC2 of one account, all regions. */
export class Ec2 {
  readonly emulation: Emulation;
  readonly machineBackend: MachineBackend | undefined;
  readonly profileArn: ProfileLookup;
  readonly types: ReadonlyMap<string, InstanceTypeData>;
  readonly regions: ReadonlyMap<string, Ec2Region>;
  readonly supply: Supply;
  /** On loopback, so that connections to an instance without a real machine never leave this computer. */
  readonly publicAddresses = new AddressPool('127.64.0.1');

  readonly #failing = new Set<{ readonly scope: SupplyScope; readonly failure: LaunchFailure }>();
  readonly #pending: { readonly scope: SupplyScope; readonly range: Range }[] = [];

  constructor(parts: Ec2Parts) {
    this.emulation = parts.emulation;
    this.machineBackend = parts.machineBackend;
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

  /** When reads begin to see a new resource. */
  visibleAt(kind: keyof Emulation['timing']['invisibleMs']): number {
    return this.now + this.pick(this.emulation.timing.invisibleMs[kind]);
  }

  isVisible(resource: Resource): boolean {
    return resource.visibleAt <= this.now;
  }

  /** Sets the boot time of machines in that scope. */
  setPending(scope: SupplyScope, range: Range): void {
    this.#pending.unshift({ scope, range });
  }

  /** Makes accepted machines in that scope end with a reason; the returned function ends the effect. */
  failLaunches(scope: SupplyScope, failure: LaunchFailure): () => void {
    const failing = { scope, failure };
    this.#failing.add(failing);
    return () => void this.#failing.delete(failing);
  }

  /** Returns how an accepted machine ends before it runs; undefined when it boots. */
  failureOf(instance: Occupant): LaunchFailure | undefined {
    return [...this.#failing].findLast(({ scope }) => covers(scope, scopeOf(instance)))?.failure;
  }

  /** Returns the boot time of a machine, ms; random within its range. */
  pendingMs(instance: Occupant): number {
    const own = this.#pending.find(({ scope }) => covers(scope, scopeOf(instance)));
    return this.pick(own?.range ?? this.emulation.timing.pendingMs);
  }

  pick(range: Range): number {
    return pick(range, this.emulation.random);
  }
}
