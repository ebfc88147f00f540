import type { PlaceableOffer } from '../domain/placement.ts';
import type { OfferRecord } from '../domain/records.ts';
import type { EndCause } from '../domain/replica/replica-state.ts';
import {
  assertMachineId,
  type ListedMachine,
  type MachineNode,
  type MachineStatus,
  type Offer,
  type Provider,
} from '../providers/provider.ts';
import { isoTime, type Clock } from '../shared/clock.ts';
import type { Logger } from '../shared/log.ts';
import type { GivenMachine } from './acquire-machine.ts';
import { askKey } from './ask-keys.ts';
import { destroyMachine, releaseMachine } from './machine.ts';
import { machineNodes, stopNodes } from './node-jobs.ts';
import { describeOffer } from './offers.ts';
import type { PlacementHistory } from './placement-history.ts';
import { describeStep, type SearchStep } from './search-steps.ts';

interface MachineFinder {
  readonly log: Logger;
  providers(): Promise<readonly Provider[]>;
  provider(name: string): Promise<Provider>;
}

/** A replica's or cluster's record. `offer`: the last one asked for, or that gave a machine. `key`: prefix of asks. */
interface MachineClaim {
  readonly key: string;
  readonly offer: OfferRecord | null;
  readonly machineId: string | null;
}

/** A machine found at a provider. */
export interface FoundMachine extends ListedMachine {
  readonly provider: Provider;
}

/** Tags of every machine ever requested for a replica. */
export function replicaTags(service: { readonly key: string }, replicaId: number): Readonly<Record<string, string>> {
  return { 'svc-service-key': service.key, 'svc-replica': String(replicaId) };
}

/**
 * Lists the machines with the given tags. Without a recorded machine, several providers may have been asked, so all are
 * searched. The recorded provider must answer; the sweep handles others that do not.
 */
export async function findMachines(
  finder: MachineFinder,
  claim: MachineClaim,
  tags: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<readonly FoundMachine[]> {
  const { offer, machineId } = claim;
  const listAt = async (provider: Provider): Promise<readonly FoundMachine[]> =>
    (await listClaimed(provider, claim, tags, signal)).map((machine) => ({ provider, ...machine }));
  const own = offer === null ? undefined : await finder.provider(offer.provider);
  const others = machineId === null ? (await finder.providers()).filter(({ name }) => name !== own?.name) : [];
  const lists = await Promise.all([
    own === undefined ? [] : listAt(own),
    ...others.map((provider) =>
      listAt(provider).catch((error: unknown) => {
        finder.log.warn({ err: error, provider: provider.name }, 'could not search a provider for machines');
        return [];
      }),
    ),
  ]);
  return lists.flat();
}

/**
 * Lists a provider's machines with the given tags. Regions that deny access are skipped only if the record names a
 * machine. That machine may be in such a region: it counts as gone when the provider says so.
 */
export async function listClaimed(
  provider: Provider,
  { machineId: id, key }: Pick<MachineClaim, 'machineId' | 'key'>,
  tags: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<readonly ListedMachine[]> {
  if (id === null) return provider.list(tags, { signal });
  let isComplete = true;
  const listed = await provider.list(tags, { signal, onDenied: () => void (isComplete = false) });
  if (isComplete || listed.some((machine) => machine.id === id)) return listed;
  assertMachineId(id);
  const status = (await provider.inspect([id], { signal })).get(id);
  return status?.state === 'gone' ? listed : [...listed, { id, tags: { ...tags, 'svc-key': key } }];
}

/** Whether a machine belongs to a record. */
export function isClaimed(machine: FoundMachine, { offer, machineId, key }: MachineClaim): boolean {
  if (offer === null || machine.provider.name !== offer.provider) return false;
  if (machineId !== null) return machine.id === machineId;
  const asked = machine.tags['svc-key'];
  const expected = askKey(key, offerOf(offer));
  // Older records used the bare key in their asks.
  return asked === expected || asked?.startsWith(`${expected}-`) === true || asked === key;
}

/**
 * Returns the record's machine, of those that an earlier search received, and terminates the others. A crash or a
 * transient failure ended that search; without this, a second machine would be requested.
 */
export function recoverMachine(
  machines: readonly FoundMachine[],
  claim: MachineClaim,
  { history, clock, background }: { readonly history: PlacementHistory; readonly clock: Clock; readonly background: AbortSignal },
): GivenMachine | undefined {
  const kept = machines.find((machine) => isClaimed(machine, claim));
  for (const { provider, id } of machines.filter((machine) => machine !== kept))
    history.keepBusy(releaseMachine(provider, { id }, clock, background));
  if (kept === undefined || claim.offer === null) return undefined;
  return { provider: kept.provider, offer: offerOf(claim.offer), machineId: kept.id, askedAt: clock.monotonic() };
}

interface RunningJob {
  readonly name: string;
  readonly numNodes: number;
}

interface Removal {
  /** To stop before the machine is destroyed. Empty for a machine that takes no commands. */
  jobs(): readonly RunningJob[] | Promise<readonly RunningJob[]>;
  /** Called while the nodes of a stopped job still have its files. `isKilled`: it did not end on SIGTERM. */
  onStopped?(nodes: readonly MachineNode[], isKilled: boolean): void;
  /** A job could not be stopped; the machine is destroyed anyway. */
  onUnstopped(error: unknown): void;
  readonly clock: Clock;
}

/** How long the program of a machine that is removed may take after SIGTERM, ms. It has drained before. */
export const killGraceMs = 10_000;
/** Limit for a provider's confirmation that a machine is gone, ms. */
const goneTimeoutMs = 300_000;

/** Stops a machine's jobs, then destroys it. Settles when its provider has confirmed that it is gone. */
export async function removeMachine({ provider, id }: FoundMachine, removal: Removal, signal: AbortSignal): Promise<void> {
  const stop = async ({ name, numNodes }: RunningJob): Promise<void> => {
    const nodes = await machineNodes(provider, id, numNodes, signal);
    const isKilled = await stopNodes(nodes, name, { graceMs: killGraceMs, signal });
    removal.onStopped?.(nodes, isKilled);
  };
  try {
    await Promise.all((await removal.jobs()).map(stop));
  } catch (error) {
    removal.onUnstopped(error);
  }
  await destroyMachine(provider, id, removal.clock, goneTimeoutMs, signal);
}

/** The recorded offer, as far as ranking needs it. */
export function offerOf(record: OfferRecord): PlaceableOffer {
  const { provider, region, zone, instanceType, cpus = 0, accelerator, gpus, spot, hourlyUsd } = record;
  return {
    provider,
    region,
    zone: zone ?? undefined,
    instanceType,
    cpus,
    accelerator: accelerator === undefined ? undefined : { name: accelerator, count: gpus },
    spot,
    hourlyUsd,
  };
}

function offerRecord(offer: Offer, nodes: number): OfferRecord {
  return {
    provider: offer.provider,
    region: offer.region,
    zone: offer.zone ?? null,
    instanceType: offer.instanceType,
    resources: describeOffer(offer, nodes),
    cpus: offer.cpus,
    gpus: offer.accelerator?.count ?? 0,
    ...(offer.accelerator === undefined ? {} : { accelerator: offer.accelerator.name }),
    spot: offer.spot,
    hourlyUsd: offer.hourlyUsd * nodes,
  };
}

/** What a search step changes in the record that the machine is for. Pure. */
export function claimChange(
  step: SearchStep,
  nodes: number,
): Partial<Pick<MachineClaim, 'offer' | 'machineId'> & { readonly reason: string | null }> {
  switch (step.type) {
    case 'asking':
      return { offer: offerRecord(step.offer, nodes), machineId: null, reason: null };
    case 'given':
      return { offer: offerRecord(step.offer, nodes), machineId: step.machineId, reason: null };
    case 'lost':
      return { offer: null, machineId: null, reason: describeStep(step) };
    case 'refused':
    case 'booting':
    case 'too-dear':
    case 'waiting':
      return { reason: describeStep(step) };
    case 'surplus':
    case 'detail':
      return {};
  }
}

/**
 * A provider's report about a machine. `gone`: for that cause. `leaving`: the provider will reclaim it at about `at`
 * (ms since the epoch; undefined: within minutes). `silent`: the provider does not know; `cause` applies if it ends.
 * `doubtful`: the provider may reclaim it, so no other replica should be placed there.
 */
export type MachineLoss =
  | { readonly type: 'gone'; readonly cause: EndCause; readonly reason: string }
  | { readonly type: 'leaving'; readonly at: number | undefined; readonly reason: string }
  | {
      readonly type: 'silent';
      readonly cause: EndCause;
      readonly reason: string;
      readonly isWidespread: boolean;
      readonly isEnding: boolean;
    }
  | { readonly type: 'doubtful'; readonly reason: string };

/** What a machine's status means for the replica; undefined when it is well. `machine` is its name in texts. Pure. */
export function lossOf(status: MachineStatus | undefined, machine: string): MachineLoss | undefined {
  if (status?.state === 'gone') {
    const { reason, message } = status;
    const words = message === undefined ? ` (${reason}).` : `: ${message.trim()}${/[.!?]$/.test(message.trim()) ? '' : '.'}`;
    return { type: 'gone', cause: reason === 'preempted' ? 'preempted' : 'machine-lost', reason: `${machine} is gone${words}` };
  }
  // Only its owner stops a machine.
  if (status?.state === 'stopped') return { type: 'gone', cause: 'machine-lost', reason: `${machine} was stopped.` };
  if ((status?.state === 'running' || status?.state === 'booting') && status.silence !== undefined) {
    const { message, isTaken, isWidespread, isEnding } = status.silence;
    return {
      type: 'silent',
      cause: isTaken ? 'preempted' : 'machine-lost',
      reason: `${machine} is silent: ${message}`,
      isWidespread,
      isEnding,
    };
  }
  if (status?.state !== 'running' || status.notice === undefined) return undefined;
  const { kind, at } = status.notice;
  if (kind === 'rebalance') return { type: 'doubtful', reason: `${machine} may be reclaimed.` };
  const when = at === undefined ? 'within minutes' : `at ${isoTime(at)}`;
  return { type: 'leaving', at, reason: `${machine} is being reclaimed by its provider ${when}.` };
}
