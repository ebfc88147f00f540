import type { Random } from '../../../../src/shared/random.ts';
import { ApiError } from '../wire/api-error.ts';
import { apiError } from '../core/error-catalogue.ts';
import type { InstanceTypeData } from './instance-type-data.ts';
import type { InstanceRecord } from './records.ts';

/** Where and what machines are; what is not given holds for all. */
export interface SupplyScope {
  readonly region?: string;
  readonly zone?: string;
  readonly instanceType?: string;
  readonly spot?: boolean;
}

/** A machine that is asked for, in one zone. */
export interface Wanted {
  readonly region: string;
  readonly zone: string;
  readonly type: InstanceTypeData;
  readonly spot: boolean;
  /** Largest hourly price, US dollars. */
  readonly maxPrice: number | undefined;
}

/** What counts against quotas and capacity: a machine that lives, or one that is about to. */
export type Occupant = Pick<InstanceRecord, 'type' | 'zone' | 'region' | 'state' | 'spotRequestId'>;

interface Limit {
  readonly scope: SupplyScope;
  readonly count: number;
}

/** Spot prices are about this part of the price on demand, unless a test sets them. */
const usualSpotShare = 0.35;
const usualQuotaVcpus = 10_000;

/** How much there is of each kind of machine, what an account may have of it, and what it costs on spot. */
export class Supply {
  readonly #capacity = new Set<Limit>();
  readonly #withheld = new Set<SupplyScope>();
  readonly #prices: { readonly scope: SupplyScope; readonly usd: number }[] = [];
  readonly #quotas: { readonly scope: SupplyScope & { readonly quota?: InstanceTypeData['quota'] }; readonly vcpus: number }[] = [];
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** There are so many machines of a kind, and no more; the function that is returned ends it. */
  limitCapacity(scope: SupplyScope, count: number): () => void {
    const limit = { scope, count };
    this.#capacity.add(limit);
    return () => void this.#capacity.delete(limit);
  }

  /** A type is not offered in a zone or region at all. */
  withhold(scope: SupplyScope): () => void {
    this.#withheld.add(scope);
    return () => void this.#withheld.delete(scope);
  }

  /** The price of spot from now on, US dollars an hour. */
  setSpotPrice(scope: SupplyScope, usd: number): void {
    this.#prices.unshift({ scope, usd });
  }

  /** What the account may have at a time of a group of types, in vCPUs. */
  setQuota(scope: SupplyScope & { readonly quota?: InstanceTypeData['quota'] }, vcpus: number): void {
    this.#quotas.unshift({ scope, vcpus });
  }

  isOffered(type: string, zone: string): boolean {
    return ![...this.#withheld].some((scope) => covers(scope, { region: zone.slice(0, -1), zone, instanceType: type }));
  }

  /** US dollars an hour. */
  spotPrice(type: InstanceTypeData, zone: string): number {
    const where = { region: zone.slice(0, -1), zone, instanceType: type.name, spot: true };
    const set = this.#prices.find(({ scope }) => covers(scope, where));
    if (set !== undefined) return set.usd;
    const letter = (zone.codePointAt(zone.length - 1) ?? 0) % 5;
    return Math.round(type.hourlyUsd * (usualSpotShare + letter * 0.02) * 10_000) / 10_000;
  }

  /** In vCPUs. */
  quota(region: string, group: InstanceTypeData['quota'], spot: boolean): number {
    const set = this.#quotas.find(({ scope }) => covers(scope, { region, spot }) && (scope.quota === undefined || scope.quota === group));
    return set?.vcpus ?? usualQuotaVcpus;
  }

  /** Throws when a machine more is beyond the account's quota. `living` are those of the region. */
  checkQuota(wanted: Wanted, living: readonly Occupant[]): void {
    const quota = this.quota(wanted.region, wanted.type.quota, wanted.spot);
    const used = living
      .filter((one) => one.type.quota === wanted.type.quota && (one.spotRequestId !== undefined) === wanted.spot && one.state !== 'stopped')
      .reduce((sum, { type }) => sum + type.vcpus, 0);
    if (used + wanted.type.vcpus <= quota) return;
    if (wanted.spot) throw apiError('MaxSpotInstanceCountExceeded');
    throw new ApiError(
      'VcpuLimitExceeded',
      `You have requested more vCPU capacity than your current vCPU limit of ${quota} allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.`,
      400,
    );
  }

  /** Throws when a zone does not have the machine, or not for that price. */
  checkZone(wanted: Wanted, living: readonly Occupant[], zones: readonly string[]): void {
    const { type, zone, spot, maxPrice } = wanted;
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
    const where = { region: wanted.region, zone, instanceType: type.name, spot };
    const full = [...this.#capacity].some(
      ({ scope, count }) => covers(scope, where) && living.filter((one) => covers(scope, whereIs(one))).length >= count,
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

/** Where and what a machine is. */
export function whereIs(instance: Occupant): SupplyScope {
  return { region: instance.region, zone: instance.zone, instanceType: instance.type.name, spot: instance.spotRequestId !== undefined };
}

/** Whether a scope holds for a machine that is or would be there. */
export function covers(scope: SupplyScope, where: SupplyScope): boolean {
  return (['region', 'zone', 'instanceType', 'spot'] as const).every((key) => scope[key] === undefined || scope[key] === where[key]);
}
