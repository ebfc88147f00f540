import { acceleratorManufacturer, acceleratorMemoryGb, isSameAccelerator } from './accelerators.ts';
import { hourlyPrice } from './price.ts';
import type { Amount, Resources } from './task.ts';

/** What of an offer decides whether it satisfies resources. */
export interface MatchableOffer {
  readonly provider: string;
  readonly region: string;
  readonly zone: string | undefined;
  readonly instanceType: string;
  readonly cpus: number;
  readonly memoryGb: number;
  readonly accelerator: { readonly name: string; readonly count: number; readonly memoryGb?: number | undefined } | undefined;
  readonly spot: boolean;
  /** US dollars, with the disk; undefined where no price is known. */
  readonly hourlyUsd: number | undefined;
  /** undefined is x86_64, which programs and images are built for when nobody says otherwise. */
  readonly architecture?: 'x86_64' | 'arm64' | undefined;
}

/** One reason against an offer. */
type Rule = (resources: Resources, offer: MatchableOffer) => string | undefined;

/** In the order in which people want to hear of them: what cannot be mended first, the price last. */
const rules: readonly Rule[] = [
  wrongPlace,
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
 * Why an offer does not satisfy one alternative of `resources`, as a clause that follows the offer's name (`has 2 vCPUs, 4+ wanted`); undefined
 * when it does. Counts of accelerators and amounts without `+` are exact, as in SkyPilot.
 */
export function whyNot(resources: Resources, offer: MatchableOffer): string | undefined {
  return firstReason(rules, resources, offer);
}

/** The same for what a choice must keep to whatever a place says it offers: where it is, spot or not, and what it costs. */
export function excludedBy(resources: Resources, offer: MatchableOffer): string | undefined {
  return firstReason([wrongPlace, wrongMarket, tooDear], resources, offer);
}

/** How many of the things that matter speak against an offer: the fewer, the nearer it is to what is wanted. */
export function countReasons(resources: Resources, offer: MatchableOffer): number {
  return rules.filter((rule) => rule(resources, offer) !== undefined).length;
}

/** vCPUs that a rented machine has at least when a file does not say how large it is to be: what SkyPilot takes. */
export const defaultCpus: Amount = { value: 8, atLeast: true };
/** GB for each wanted vCPU of a rented machine when no memory is asked for: the leanest ratio that clouds sell as a normal machine. */
const defaultGbPerCpu = 2;

/**
 * Resources for a rented machine with what files usually leave out: 8+ vCPUs where nothing tells the size (neither vCPUs, memory, accelerators nor
 * an instance type), and 2 GB for each vCPU where vCPUs but no memory are given, so that `cpus: 2+` is no machine of half a GB.
 */
export function withDefaultSize(resources: Resources): Resources {
  const { accelerator, acceleratorMemory, instanceType, memory } = resources;
  if (instanceType !== undefined || memory !== undefined) return resources;
  const sized = accelerator !== undefined || acceleratorMemory !== undefined;
  const cpus = resources.cpus ?? (sized ? undefined : defaultCpus);
  return cpus === undefined ? resources : { ...resources, cpus, memory: { value: cpus.value * defaultGbPerCpu, atLeast: true } };
}

/** An amount as users write it: `4` or `4+`. */
function amountText({ value, atLeast }: Amount): string {
  return `${value}${atLeast ? '+' : ''}`;
}

/** Whether something present is the amount that is wanted. */
export function isAmount(present: number, wanted: Amount): boolean {
  return wanted.atLeast ? present >= wanted.value : present === wanted.value;
}

function firstReason(among: readonly Rule[], resources: Resources, offer: MatchableOffer): string | undefined {
  for (const rule of among) {
    const why = rule(resources, offer);
    if (why !== undefined) return why;
  }
  return undefined;
}

function wrongPlace({ cloud, region, zone }: Resources, offer: MatchableOffer): string | undefined {
  if (cloud !== undefined && cloud !== offer.provider) return `is on ${offer.provider}, not on ${cloud}`;
  if (region !== undefined && region !== offer.region) return `is in ${offer.region}, not in ${region}`;
  if (zone !== undefined && zone !== offer.zone) return `is in ${offer.zone ?? `${offer.region}, in no zone of its own`}, not in ${zone}`;
  return undefined;
}

function wrongInstanceType({ instanceType }: Resources, offer: MatchableOffer): string | undefined {
  return instanceType === undefined || instanceType === offer.instanceType
    ? undefined
    : `is of type ${offer.instanceType}, ${instanceType} wanted`;
}

function wrongAccelerator({ accelerator }: Resources, offer: MatchableOffer): string | undefined {
  if (accelerator === undefined) return undefined;
  const { name, count } = accelerator;
  const has = offer.accelerator;
  if (has !== undefined && has.count === count && isSameAccelerator(has.name, name)) return undefined;
  return `${whatItHas(offer)}, ${count}x ${name} wanted`;
}

function wrongAcceleratorMemory({ acceleratorMemory: wanted }: Resources, offer: MatchableOffer): string | undefined {
  if (wanted === undefined) return undefined;
  const { count, manufacturer } = wanted;
  const has = offer.accelerator;
  const memoryGb = has === undefined ? undefined : (has.memoryGb ?? acceleratorMemoryGb(has.name));
  const maker = has === undefined ? undefined : acceleratorManufacturer(has.name);
  const fits =
    has !== undefined &&
    has.count === count &&
    memoryGb !== undefined &&
    isAmount(memoryGb, wanted) &&
    (manufacturer === undefined || maker?.toLowerCase() === manufacturer.toLowerCase());
  if (fits) return undefined;
  const of = memoryGb === undefined ? '' : ` of ${memoryGb} GB`;
  return `${whatItHas(offer)}${of}, ${count}x ${manufacturer ?? 'any'} of ${amountText(wanted)} GB wanted`;
}

/** It would do, but costs more and starts from another image; who wants it names its type. */
function needlessAccelerator({ accelerator, acceleratorMemory, instanceType }: Resources, offer: MatchableOffer): string | undefined {
  const asked = accelerator !== undefined || acceleratorMemory !== undefined || instanceType !== undefined;
  return asked || offer.accelerator === undefined ? undefined : `${whatItHas(offer)}, none wanted`;
}

/** Who names a type, or an accelerator that exists with one architecture only, knows what it is. */
function wrongArchitecture({ accelerator, instanceType }: Resources, offer: MatchableOffer): string | undefined {
  if (offer.architecture !== 'arm64' || instanceType !== undefined || accelerator !== undefined) return undefined;
  return 'has arm64 processors, which run no programs for x86_64 (name its instance_type to use it)';
}

function wrongCpus({ cpus }: Resources, offer: MatchableOffer): string | undefined {
  if (cpus === undefined || isAmount(offer.cpus, cpus)) return undefined;
  return `has ${offer.cpus} vCPU${offer.cpus === 1 ? '' : 's'}, ${amountText(cpus)} wanted`;
}

function wrongMemory({ memory }: Resources, offer: MatchableOffer): string | undefined {
  if (memory === undefined || isAmount(offer.memoryGb, memory)) return undefined;
  return `has ${offer.memoryGb} GB of memory, ${amountText(memory)} wanted`;
}

function wrongMarket({ useSpot }: Resources, offer: MatchableOffer): string | undefined {
  if (useSpot === offer.spot) return undefined;
  return useSpot ? 'is no spot machine, one is wanted' : 'is a spot machine, none wanted';
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
