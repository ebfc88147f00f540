import type { LocalConfig, LocalRegion, LocalSpotZone } from '../../domain/config.ts';
import { describeGpus, matchingGpus, requestedGpuCount, type Gpu, gpuQuery, parseGpuList } from '../../domain/gpus.ts';
import type { Amount, Resources, Accelerator } from '../../domain/task.ts';
import { runCommand } from '../../remote/run-command.ts';
import type { Clock } from '../../shared/clock.ts';
import { wholeEnv } from '../../shared/env.ts';
import type { Offer, OfferList } from '../provider.ts';
import type { MachineRecord } from './machine-store.ts';
import { spotOffers } from './spot-zones.ts';

/** This machine's capacity. */
export interface LocalFacts {
  readonly cpus: number;
  readonly memoryGb: number;
  readonly gpus: readonly Gpu[];
}

/** One offer per region, or per spot zone, or why there is none. `machines`: those that exist. */
export function localOffers(
  resources: Resources,
  facts: LocalFacts,
  { regions, spotZones, hourlyUsd }: Pick<LocalConfig, 'regions' | 'spotZones' | 'hourlyUsd'>,
  machines: readonly MachineRecord[],
): OfferList {
  const zones = resources.useSpot ? spotZones : [];
  const whyNone = whyNot(resources, facts, zones) ?? whyNoRegion(resources, regions, zones);
  if (whyNone !== undefined) return { offers: [], whyNone };
  const count = requestedGpuCount(resources);
  const [gpu] = matchingGpus(facts.gpus, resources);
  const offers = regions
    .filter((region) => resources.region === undefined || resources.region === region.name)
    .map((region): Offer => ({
      provider: 'local',
      region: region.name,
      zone: undefined,
      instanceType: 'this computer',
      cpus: facts.cpus,
      memoryGb: facts.memoryGb,
      accelerator: count === 0 || gpu === undefined ? undefined : { name: resources.accelerator?.name ?? gpu.name, count },
      spot: false,
      hourlyUsd,
      ...roomOf(region, matchingGpus(facts.gpus, resources), count, machines),
    }));
  if (!resources.useSpot) return { offers, whyNone: undefined };
  const ofZones = offers.flatMap((offer) => spotOffers(offer, zones, machines));
  const wanted = ofZones.filter(({ zone }) => resources.zone === undefined || resources.zone === zone);
  return wanted.length > 0
    ? { offers: wanted, whyNone: undefined }
    : { offers: [], whyNone: `${resources.region ?? 'It'} has no spot zone.` };
}

/** How many more machines the region can have: by its limit, and by the GPUs that no machine has. */
function roomOf(
  { name, maxMachines }: LocalRegion,
  matching: readonly Gpu[],
  count: number,
  machines: readonly MachineRecord[],
): Pick<Offer, 'room'> {
  const taken = new Set(machines.flatMap(({ gpus }) => gpus ?? []));
  const ofGpus = count === 0 ? [] : [Math.floor(matching.filter(({ index }) => !taken.has(index)).length / count)];
  const own = machines.filter(({ region }) => region === name).length;
  const limits = [...ofGpus, ...(maxMachines === undefined ? [] : [Math.max(0, maxMachines - own)])];
  return limits.length === 0 ? {} : { room: Math.min(...limits) };
}

function whyNot(resources: Resources, { cpus, memoryGb, gpus }: LocalFacts, zones: readonly LocalSpotZone[]): string | undefined {
  if (resources.cloud !== undefined && resources.cloud !== 'local') return `It is asked for on '${resources.cloud}'.`;
  if (resources.useSpot && zones.length === 0) return 'use_spot is asked for, and this computer has no spot zones (local.spot_zones).';
  if (resources.instanceType !== undefined)
    return `The instance type '${resources.instanceType}' is asked for, and this computer has no instance types.`;
  if (resources.imageId !== undefined) return 'image_id is asked for, and programs run on this computer as it is, without images.';
  if (exceeds(resources.cpus, cpus)) return `${describe(resources.cpus)} CPUs are asked for, and this computer has ${cpus}.`;
  if (exceeds(resources.memory, memoryGb))
    return `${describe(resources.memory)} GB of memory are asked for, and this computer has ${memoryGb} GB.`;
  const count = requestedGpuCount(resources);
  const matching = matchingGpus(gpus, resources);
  if (count <= matching.length) return undefined;
  const name = resources.accelerator?.name ?? `GPU with ${describe(resources.acceleratorMemory)} GB`;
  return `${count}x ${name} ${count === 1 ? 'is' : 'are'} asked for, and this computer has ${describeGpus(gpus)}.`;
}

function whyNoRegion({ region, zone }: Resources, regions: readonly LocalRegion[], zones: readonly LocalSpotZone[]): string | undefined {
  const names = regions.map(({ name }) => name).join(', ');
  if (zone !== undefined && !zones.some(({ name }) => name === zone)) {
    const those = zones.map(({ name }) => name).join(', ');
    return `The zone '${zone}' is asked for, and this computer has ${zones.length === 0 ? 'no zones' : `the spot zones ${those}`}.`;
  }
  if (region !== undefined && !regions.some(({ name }) => name === region))
    return `The region '${region}' is asked for, and there ${regions.length === 1 ? 'is' : 'are'}: ${names}.`;
  return undefined;
}

/** Amounts are lower bounds: a machine cannot get a smaller part of the user's own computer. */
function exceeds(amount: Amount | undefined, present: number): boolean {
  return amount !== undefined && amount.value > present;
}

function describe(amount: Amount | undefined): string {
  return amount === undefined ? 'any' : `${amount.value}${amount.atLeast ? '+' : ''}`;
}

/** ms. The driver can take seconds to wake up. */
const queryTimeoutMs = 20_000;

let detected: Promise<readonly Gpu[]> | undefined;

/** Queries once per process. The query also makes the driver create its device files for machines. */
export function findGpus(clock: Clock, configured: Accelerator | undefined): Promise<readonly Gpu[]> {
  if (configured !== undefined) {
    const { name, count } = configured;
    return Promise.resolve(Array.from({ length: Math.floor(count) }, (_, index) => ({ index, name, memoryGb: undefined })));
  }
  detected ??= queryDriver(clock);
  return detected;
}

async function queryDriver(clock: Clock): Promise<readonly Gpu[]> {
  const { exitCode, stdout } = await runCommand(gpuQuery, { env: wholeEnv(), clock, timeoutMs: queryTimeoutMs });
  return exitCode === 0 ? parseGpuList(stdout) : [];
}
