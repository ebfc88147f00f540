import { acceleratorManufacturer, acceleratorMemoryGb, isSameAccelerator } from './accelerators.ts';
import { hourlyPrice } from './price.ts';
import type { Amount, Resources } from './task.ts';

/** The fields of an offer that decide whether it satisfies resources. */
export interface MatchableOffer {
  readonly provider: string;
  readonly region: string;
  readonly zone: string | undefined;
  readonly instanceType: string;
  readonly cpus: number;
  readonly memoryGb: number;
  readonly accelerator: { readonly name: string; readonly count: number; readonly memoryGb?: number | undefined } | undefined;
  readonly spot: boolean;
  /** US dollars, with the disk; undefined when no price is known. */
  readonly hourlyUsd: number | undefined;
  /** undefined means x86_64: programs and images are built for it unless stated otherwise. */
  readonly architecture?: 'x86_64' | 'arm64' | undefined;
}

type Rule = (resources: Resources, offer: MatchableOffer) => string | undefined;

/** In the order in which users need the reasons: reasons that cannot be changed first, the price last. */
const rules: readonly Rule[] = [
  wrongLocation,
  wrongInstanceType,
  wrongAccelerator,
  wrongAcceleratorMemory,
  needlessAccelerator,
  wrongArchitecture,
  wrongCpus,
  wrongMemory,
  wrongMarket,
  tooDear,
];

/**
 * Why an offer does not satisfy one alternative, as a clause after the offer's name (`has 2 vCPUs, 4+ requested`), or
 * undefined. Counts of accelerators and amounts without `+` are exact, as in SkyPilot.
 */
export function whyNot(resources: Resources, offer: MatchableOffer): string | undefined {
  return firstReason(rules, resources, offer);
}

/** Like `whyNot`, but checks only what applies whatever offers a provider returns: location, spot or not, price. */
export function excludedBy(resources: Resources, offer: MatchableOffer): string | undefined {
  return firstReason([wrongLocation, wrongMarket, tooDear], resources, offer);
}

/** Number of reasons against an offer. A lower number means a closer match. */
export function countReasons(resources: Resources, offer: MatchableOffer): number {
  return rules.filter((rule) => rule(resources, offer) !== undefined).length;
}

/** Minimum vCPUs of a rented machine when the file gives no size: SkyPilot's default. */
export const defaultCpus: Amount = { value: 8, atLeast: true };
/** GB per vCPU of a rented machine without a given memory: the leanest ratio that clouds sell as a normal machine. */
const defaultGbPerCpu = 2;

/**
 * Adds the usually omitted sizes of a rented machine: 8+ vCPUs when no field gives a size, and 2 GB per vCPU when the
 * file gives vCPUs but no memory. Otherwise `cpus: 2+` could match a machine with half a GB.
 */
export function withDefaultSize(resources: Resources): Resources {
  const { accelerator, acceleratorMemory, instanceType, memory } = resources;
  if (instanceType !== undefined || memory !== undefined) return resources;
  const sized = accelerator !== undefined || acceleratorMemory !== undefined;
  const cpus = resources.cpus ?? (sized ? undefined : defaultCpus);
  return cpus === undefined ? resources : { ...resources, cpus, memory: { value: cpus.value * defaultGbPerCpu, atLeast: true } };
}

/** `4` or `4+`, as users write it. */
function amountText({ value, atLeast }: Amount): string {
  return `${value}${atLeast ? '+' : ''}`;
}

/** Whether an amount satisfies the requested one. */
export function isAmount(present: number, requested: Amount): boolean {
  return requested.atLeast ? present >= requested.value : present === requested.value;
}

function firstReason(among: readonly Rule[], resources: Resources, offer: MatchableOffer): string | undefined {
  for (const rule of among) {
    const why = rule(resources, offer);
    if (why !== undefined) return why;
  }
  return undefined;
}

function wrongLocation({ cloud, region, zone }: Resources, offer: MatchableOffer): string | undefined {
  if (cloud !== undefined && cloud !== offer.provider) return `is on ${offer.provider}, not on ${cloud}`;
  if (region !== undefined && region !== offer.region) return `is in ${offer.region}, not in ${region}`;
  if (zone !== undefined && zone !== offer.zone) return `is in ${offer.zone ?? `${offer.region}, in no zone of its own`}, not in ${zone}`;
  return undefined;
}

function wrongInstanceType({ instanceType }: Resources, offer: MatchableOffer): string | undefined {
  return instanceType === undefined || instanceType === offer.instanceType
    ? undefined
    : `is of type ${offer.instanceType}, ${instanceType} requested`;
}

function wrongAccelerator({ accelerator }: Resources, offer: MatchableOffer): string | undefined {
  if (accelerator === undefined) return undefined;
  const { name, count } = accelerator;
  const has = offer.accelerator;
  if (has !== undefined && has.count === count && isSameAccelerator(has.name, name)) return undefined;
  return `${whatItHas(offer)}, ${count}x ${name} requested`;
}

function wrongAcceleratorMemory({ acceleratorMemory: requested }: Resources, offer: MatchableOffer): string | undefined {
  if (requested === undefined) return undefined;
  const { count, manufacturer } = requested;
  const has = offer.accelerator;
  const memoryGb = has === undefined ? undefined : (has.memoryGb ?? acceleratorMemoryGb(has.name));
  const maker = has === undefined ? undefined : acceleratorManufacturer(has.name);
  const fits =
    has !== undefined &&
    has.count === count &&
    memoryGb !== undefined &&
    isAmount(memoryGb, requested) &&
    (manufacturer === undefined || maker?.toLowerCase() === manufacturer.toLowerCase());
  if (fits) return undefined;
  const of = memoryGb === undefined ? '' : ` of ${memoryGb} GB`;
  return `${whatItHas(offer)}${of}, ${count}x ${manufacturer ?? 'any'} of ${amountText(requested)} GB requested`;
}

/** Such a machine would work, but it costs more and starts from another image. A user who wants it names its type. */
function needlessAccelerator({ accelerator, acceleratorMemory, instanceType }: Resources, offer: MatchableOffer): string | undefined {
  const asked = accelerator !== undefined || acceleratorMemory !== undefined || instanceType !== undefined;
  return asked || offer.accelerator === undefined ? undefined : `${whatItHas(offer)}, none requested`;
}

/** A user who names a type, or an accelerator that exists with one architecture only, knows the architecture. */
function wrongArchitecture({ accelerator, instanceType }: Resources, offer: MatchableOffer): string | undefined {
  if (offer.architecture !== 'arm64' || instanceType !== undefined || accelerator !== undefined) return undefined;
  return 'has arm64 processors, which run no programs for x86_64 (name its instance_type to use it)';
}

function wrongCpus({ cpus }: Resources, offer: MatchableOffer): string | undefined {
  if (cpus === undefined || isAmount(offer.cpus, cpus)) return undefined;
  return `has ${offer.cpus} vCPU${offer.cpus === 1 ? '' : 's'}, ${amountText(cpus)} requested`;
}

function wrongMemory({ memory }: Resources, offer: MatchableOffer): string | undefined {
  if (memory === undefined || isAmount(offer.memoryGb, memory)) return undefined;
  return `has ${offer.memoryGb} GB of memory, ${amountText(memory)} requested`;
}

function wrongMarket({ useSpot }: Resources, offer: MatchableOffer): string | undefined {
  if (useSpot === offer.spot) return undefined;
  return useSpot ? 'is not a spot machine, one is requested' : 'is a spot machine, none requested';
}

function tooDear({ maxHourlyCost }: Resources, { hourlyUsd }: MatchableOffer): string | undefined {
  if (maxHourlyCost === undefined) return undefined;
  const limit = hourlyPrice(maxHourlyCost);
  if (hourlyUsd === undefined) return `has no known price, and max_hourly_cost is ${limit}`;
  return hourlyUsd > maxHourlyCost ? `costs ${hourlyPrice(hourlyUsd)}, more than max_hourly_cost (${limit})` : undefined;
}

function whatItHas({ accelerator }: MatchableOffer): string {
  return accelerator === undefined ? 'has no accelerator' : `has ${accelerator.count}x ${accelerator.name}`;
}

type RequestedAbilities = Pick<Resources, 'useSpot' | 'imageId' | 'diskTier' | 'networkTier'>;

interface ProviderAbilities {
  readonly spot: boolean;
  readonly customImages: boolean;
  readonly multiNode: boolean;
  readonly diskTiers?: boolean;
  readonly networkTiers?: boolean;
}

/**
 * The first requested ability that a provider lacks, for machines of `nodes` nodes: a sentence that names the field,
 * no full stop; or undefined. A single disk tier satisfies `disk_tier: best`, but `network_tier: best` needs support.
 */
export function missingAbility(requested: RequestedAbilities, abilities: ProviderAbilities, nodes = 1): string | undefined {
  const { useSpot, imageId, diskTier, networkTier } = requested;
  if (nodes > 1 && !abilities.multiNode) return `its machines have one node each (num_nodes: ${nodes})`;
  if (useSpot && !abilities.spot) return 'it has no spot machines (use_spot)';
  if (imageId !== undefined && !abilities.customImages) return 'it takes no images of its users (image_id)';
  if (diskTier !== undefined && diskTier !== 'best' && abilities.diskTiers !== true)
    return `its disks cannot be chosen (disk_tier: ${diskTier})`;
  if (networkTier === 'best' && abilities.networkTiers !== true) return 'its networks cannot be chosen (network_tier: best)';
  return undefined;
}
