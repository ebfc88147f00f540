import type { Random } from '../../../../src/shared/random.ts';
import { ApiError } from '../wire/api-error.ts';
import { apiError } from '../core/error-catalogue.ts';
import type { InstanceTypeData } from './instance-type-data.ts';
import type { InstanceRecord } from './records.ts';

/** Scope of machines; an absent field matches all. */
export interface SupplyScope {
  readonly region?: string;
  readonly zone?: string;
  readonly instanceType?: string;
  readonly spot?: boolean;
}

/** A requested machine in one zone. */
export interface RequestedInstance {
  readonly region: string;
  readonly zone: string;
  readonly type: InstanceTypeData;
  readonly spot: boolean;
  /** Largest hourly price, US dollars. */
  readonly maxPrice: number | undefined;
}

/** A machine that counts against quotas and capacity: one that lives, or one that is about to. */
export type Occupant = Pick<InstanceRecord, 'type' | 'zone' | 'region' | 'state' | 'spotRequestId'>;

interface Limit {
  readonly scope: SupplyScope;
  readonly count: number;
}

/** Default ratio of spot price to on-demand price, unless a test sets the spot price. */
const usualSpotShare = 0.35;
const usualQuotaVcpus = 10_000;

/** Capacity for each kind of machine, quotas of the account, and spot prices. */
export class Supply {
  readonly #capacity = new Set<Limit>();
  readonly #withheld = new Set<SupplyScope>();
  readonly #prices: { readonly scope: SupplyScope; readonly usd: number }[] = [];
  readonly #quotas: { readonly scope: SupplyScope & { readonly quota?: InstanceTypeData['quota'] }; readonly vcpus: number }[] = [];
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Limits the number of machines of a kind; the returned function ends the limit. */
  limitCapacity(scope: SupplyScope, count: number): () => void {
    const limit = { scope, count };
    this.#capacity.add(limit);
    return () => void this.#capacity.delete(limit);
  }

  /** Stops offering a type in a zone or region. */
  withhold(scope: SupplyScope): () => void {
    this.#withheld.add(scope);
    return () => void this.#withheld.delete(scope);
  }

  /** Sets the spot price, US dollars an hour. */
  setSpotPrice(scope: SupplyScope, usd: number): void {
    this.#prices.unshift({ scope, usd });
  }

  /** Sets the account's quota for a type family, in vCPUs. */
  setQuota(scope: SupplyScope & { readonly quota?: InstanceTypeData['quota'] }, vcpus: number): void {
    this.#quotas.unshift({ scope, vcpus });
  }

  isOffered(type: string, zone: string): boolean {
    return ![...this.#withheld].some((scope) => covers(scope, { region: zone.slice(0, -1), zone, instanceType: type }));
  }

  /** US dollars an hour. */
  spotPrice(type: InstanceTypeData, zone: string): number {
    const target = { region: zone.slice(0, -1), zone, instanceType: type.name, spot: true };
    const set = this.#prices.find(({ scope }) => covers(scope, target));
    if (set !== undefined) return set.usd;
    const letter = (zone.codePointAt(zone.length - 1) ?? 0) % 5;
    return Math.round(type.hourlyUsd * (usualSpotShare + letter * 0.02) * 10_000) / 10_000;
  }

  /** In vCPUs. */
  quota(region: string, group: InstanceTypeData['quota'], spot: boolean): number {
    const set = this.#quotas.find(({ scope }) => covers(scope, { region, spot }) && (scope.quota === undefined || scope.quota === group));
    return set?.vcpus ?? usualQuotaVcpus;
  }

  /** Throws when another machine exceeds the account's quota. `living` are those of the region. */
  checkQuota(requested: RequestedInstance, living: readonly Occupant[]): void {
    const quota = this.quota(requested.region, requested.type.quota, requested.spot);
    const used = living
      .filter(
        (one) => one.type.quota === requested.type.quota && (one.spotRequestId !== undefined) === requested.spot && one.state !== 'stopped',
      )
      .reduce((sum, { type }) => sum + type.vcpus, 0);
    if (used + requested.type.vcpus <= quota) return;
    if (requested.spot) throw apiError('MaxSpotInstanceCountExceeded');
    throw new ApiError(
      'VcpuLimitExceeded',
      `You have requested more vCPU capacity than your current vCPU limit of ${quota} allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.`,
      400,
    );
  }

  /** Throws when a zone lacks capacity for the machine, or its price is above the bid. */
  checkZone(requested: RequestedInstance, living: readonly Occupant[], zones: readonly string[]): void {
    const { type, zone, spot, maxPrice } = requested;
    const others = zones.filter((other) => other !== zone).join(', ');
    if (!this.isOffered(type.name, zone)) {
      throw new ApiError(
        'Unsupported',
        `Your requested instance type (${type.name}) is not supported in your requested Availability Zone (${zone}). Please retry your request by not specifying an Availability Zone or choosing ${others}.`,
        400,
      );
    }
    const price = this.spotPrice(type, zone);
    if (spot && maxPrice !== undefined && maxPrice < price) {
      throw new ApiError(
        'SpotMaxPriceTooLow',
        `Your Spot request price of ${maxPrice} is lower than the minimum required Spot request fulfillment price of ${price}.`,
        400,
      );
    }
    const target = { region: requested.region, zone, instanceType: type.name, spot };
    const full = [...this.#capacity].some(
      ({ scope, count }) => covers(scope, target) && living.filter((one) => covers(scope, scopeOf(one))).length >= count,
    );
    if (!full) return;
    if (spot) throw new ApiError('InsufficientInstanceCapacity', 'There is no Spot capacity available that matches your request.', 500);
    throw new ApiError(
      'InsufficientInstanceCapacity',
      `We currently do not have sufficient ${type.name} capacity in the Availability Zone you requested (${zone}). Our system will be working on provisioning additional capacity. You can currently get ${type.name} capacity by not specifying an Availability Zone in your request or choosing ${others}.`,
      500,
    );
  }

  /** The order in which zones are tried for a request that names none. */
  shuffled(zones: readonly string[]): readonly string[] {
    return zones
      .map((zone) => ({ zone, key: this.#random() }))
      .toSorted((a, b) => a.key - b.key)
      .map(({ zone }) => zone);
  }
}

/** Returns the scope of a machine. */
export function scopeOf(instance: Occupant): SupplyScope {
  return { region: instance.region, zone: instance.zone, instanceType: instance.type.name, spot: instance.spotRequestId !== undefined };
}

/** Whether a scope matches a machine that exists or is requested. */
export function covers(scope: SupplyScope, target: SupplyScope): boolean {
  return (['region', 'zone', 'instanceType', 'spot'] as const).every((key) => scope[key] === undefined || scope[key] === target[key]);
}
