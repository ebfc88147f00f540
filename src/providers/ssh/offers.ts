import { canonicalAccelerator } from '../../domain/accelerators.ts';
import { describeGpus, matchingGpus, requestedGpuCount, type Gpu } from '../../domain/gpus.ts';
import { whyNot } from '../../domain/offer-match.ts';
import type { SshPool } from '../../domain/config.ts';
import type { Amount, Resources } from '../../domain/task.ts';
import { didYouMean } from '../../shared/did-you-mean.ts';
import type { Offer, OfferList, RejectedOffer } from '../provider.ts';
import { shareName, requestedShare, whyNoShare } from './host-share.ts';
import { whyUnfit, type HostFacts } from './host-facts.ts';
import type { MachineRecord } from './machine-record.ts';

/** An SSH host as the input of offers. */
export interface OfferingHost {
  readonly pool: string;
  readonly host: string;
  readonly hourlyUsd: number;
  /** `why`: a clause why it does not answer. */
  readonly state: { readonly facts: HostFacts; readonly machines: readonly MachineRecord[] } | { readonly why: string };
}

/** Maximum of SSH hosts in one sentence. */
const shownHosts = 5;

/** One offer for each SSH host where the resources are free, cheapest first, or why there is none. */
export function sshOffers(resources: Resources, pools: readonly SshPool[], hosts: readonly OfferingHost[], explain: boolean): OfferList {
  const { region, zone } = resources;
  if (pools.length === 0) return { offers: [], whyNone: 'There are no pools of hosts.' };
  if (region !== undefined && !pools.some(({ name }) => name === region)) {
    const names = pools.map(({ name }) => name);
    const meant = didYouMean(region, names);
    const suggestion = meant === undefined ? '' : ` Did you mean '${meant}'?`;
    return { offers: [], whyNone: `There is no pool '${region}' (there are: ${names.join(', ')}).${suggestion}`, isMisnamed: true };
  }
  const asked = hosts.filter(({ pool, host }) => (region === undefined || pool === region) && (zone === undefined || host === zone));
  const judged = asked.map((host) => ({ host, ...judge(resources, host) }));
  const offers = judged
    .flatMap(({ offer, why }) => (offer !== undefined && why === undefined ? [offer] : []))
    .toSorted((a, b) => a.hourlyUsd - b.hourlyUsd);
  const rejected = judged.flatMap(({ offer, why }): readonly RejectedOffer[] =>
    offer === undefined || why === undefined ? [] : [{ offer, why }],
  );
  const whys = judged.flatMap(({ host, why }) => (why === undefined ? [] : [`${host.pool}/${host.host} ${why}`]));
  const listed = [...whys.slice(0, shownHosts), ...(whys.length > shownHosts ? [`and ${whys.length - shownHosts} more`] : [])];
  const noHost = `No host ${zone === undefined ? '' : `'${zone}' `}is in the pools.`;
  const whyNone = listed.length === 0 ? noHost : `No host has what is asked for${requestText(resources)}: ${listed.join('; ')}.`;
  const isFull = offers.length === 0 && asked.some((host) => isFit(resources, host));
  return { offers, whyNone: offers.length > 0 ? undefined : whyNone, ...(isFull && { isFull }), ...(explain ? { rejected } : {}) };
}

/** Whether the SSH host would do if it had no machines. */
function isFit(resources: Resources, host: OfferingHost): boolean {
  if ('why' in host.state) return false;
  const { offer, why } = judge(resources, { ...host, state: { ...host.state, machines: [] } });
  return offer !== undefined && why === undefined;
}

interface Judgement {
  /** Undefined where the SSH host's state is unknown. */
  readonly offer: Offer | undefined;
  /** A clause that follows the SSH host's name; undefined when the offer is valid. */
  readonly why: string | undefined;
}

function judge(resources: Resources, { pool, host, hourlyUsd, state }: OfferingHost): Judgement {
  if ('why' in state) return { offer: undefined, why: `cannot be used: ${state.why}` };
  const { facts, machines } = state;
  const share = requestedShare(resources);
  const count = requestedGpuCount(resources);
  const { named, matching, free } = findGpus(resources, facts.gpus, machines);
  const offer: Offer = {
    provider: 'ssh',
    region: pool,
    zone: host,
    instanceType: shareName(share),
    cpus: share.cpus || facts.cpus,
    memoryGb: share.memoryGb || facts.memoryGb,
    accelerator: named === undefined || count === 0 ? undefined : { ...named, count: matching.length > 0 ? count : facts.gpus.length },
    spot: false,
    hourlyUsd,
  };
  const unfit = whyUnfit(facts);
  if (unfit !== undefined) return { offer, why: `cannot be used: ${unfit.why}` };
  if (count > matching.length) return { offer, why: `has ${describeGpus(facts.gpus)} as GPUs, ${gpuText(resources)} requested` };
  if (count > free.length)
    return { offer, why: `has ${free.length} of ${matching.length} ${named?.name ?? 'GPU'} free, ${count} requested` };
  // Only a request by instance type can mismatch. GPUs are checked above, by the driver's names.
  const rest = { ...resources, accelerator: undefined, acceleratorMemory: undefined };
  const why =
    whyNoShare(share, { cpus: facts.cpus, memoryGb: facts.memoryGb }, machines) ?? whyNot(rest, { ...offer, accelerator: undefined });
  return { offer, why };
}

interface FoundGpus {
  readonly named: { readonly name: string; readonly memoryGb: number | undefined } | undefined;
  /** GPUs of that name that satisfy the request. `free`: those that no machine has. */
  readonly matching: readonly Gpu[];
  readonly free: readonly Gpu[];
}

/** GPUs of one name, by which a create requests them. Of several suitable kinds, the most free GPUs decide. */
function findGpus(resources: Resources, gpus: readonly Gpu[], machines: readonly MachineRecord[]): FoundGpus {
  const taken = new Set(machines.flatMap((machine) => machine.gpus ?? []));
  const { accelerator } = resources;
  const names =
    accelerator === undefined
      ? [...new Set(matchingGpus(gpus, resources).map(({ name }) => name))]
      : [canonicalAccelerator(accelerator.name) ?? accelerator.name, accelerator.name];
  const found = names.map((name): FoundGpus => {
    const matching = matchingGpus(gpus, { ...resources, accelerator: { name, count: accelerator?.count ?? 1 } });
    return { named: { name, memoryGb: matching[0]?.memoryGb }, matching, free: matching.filter(({ index }) => !taken.has(index)) };
  });
  const [best] = found.toSorted((a, b) => b.free.length - a.free.length || b.matching.length - a.matching.length);
  if (best !== undefined && best.matching.length > 0) return best;
  const [any] = gpus;
  return { named: any, matching: [], free: [] };
}

function gpuText({ accelerator, acceleratorMemory }: Resources): string {
  if (accelerator !== undefined) return `${accelerator.count}x ${accelerator.name}`;
  return acceleratorMemory === undefined ? 'none' : `${acceleratorMemory.count} with ${amount(acceleratorMemory)} GB`;
}

function requestText(resources: Resources): string {
  const { cpus, memory, accelerator, acceleratorMemory } = resources;
  const parts = [
    ...(accelerator === undefined && acceleratorMemory === undefined ? [] : [`${gpuText(resources)} GPUs`]),
    ...(cpus === undefined ? [] : [`${amount(cpus)} CPUs`]),
    ...(memory === undefined ? [] : [`${amount(memory)} GB of memory`]),
  ];
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}

function amount({ value, atLeast }: Amount): string {
  return `${value}${atLeast ? '+' : ''}`;
}
