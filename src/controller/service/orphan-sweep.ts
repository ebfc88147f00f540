import { isEnded } from '../../domain/replica/replica-state.ts';
import type { ListedMachine, Provider } from '../../providers/provider.ts';
import { listWithin } from '../../provision/left-machines.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { messageOf, type SvcError } from '../../shared/errors.ts';
import type { Loop } from '../../shared/loop.ts';
import { asSentence } from '../../shared/text.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import { compareAndSwap } from '../../store/compare-and-swap.ts';
import { type ReplicaRecord, type ServiceRecord, newReplica, subjectEvent } from '../../domain/records.ts';
import type { ServiceContext } from './service-context.ts';

/** How long a provider may take to list machines, ms; shorter after a restore, when the first pass waits for it. */
const listMs = 60_000;
const listFirstMs = 10_000;
/** How long resolving a machine's address may take, ms: the first pass waits for it as well. */
const addressMs = 5_000;

interface Found {
  readonly provider: Provider;
  /** Why regions of the provider could not be searched or cleared. */
  readonly denied: Set<string>;
  readonly machines?: readonly ListedMachine[];
  readonly failure?: string;
}

interface Sweep {
  /** The enabled providers; absent: checks now which ones are. */
  readonly enabled?: readonly Provider[];
  /** Asks only where this home has requested machines of the service. Default: no. */
  readonly requestedOnly?: boolean;
}

/** Asks all providers at once: one that does not answer delays no other. */
async function findAll(
  context: ServiceContext,
  { timeoutMs, enabled, requestedOnly = false }: Sweep & { readonly timeoutMs: number },
  signal: AbortSignal,
): Promise<readonly Found[]> {
  const { clock, key, log } = context;
  return Promise.all(
    (await sweptProviders(context, enabled)).map(async (provider): Promise<Found> => {
      const denied = new Set<string>();
      const onDenied = (error: SvcError): void => void denied.add(error.message);
      const options = { clock, signal, onDenied, requestedOnly };
      try {
        const machines = await listWithin(provider, { 'svc-service-key': key }, timeoutMs, options);
        return { provider, denied, machines };
      } catch (error) {
        if (!signal.aborted) log.warn({ err: error, provider: provider.name }, 'could not search a provider for machines without a record');
        return { provider, denied, failure: `${provider.name} cannot be searched: ${messageOf(error)}` };
      }
    }),
  );
}

/**
 * Removes machines with this service's key that belong to no living or ending replica: a crash leaks none. `all`: no
 * replicas are left, so buckets and everything else that providers created for the service are removed too. Returns a
 * sentence for each provider that could not be searched or cleared, and for remaining buckets.
 */
export async function removeOrphans(
  context: ServiceContext,
  signal: AbortSignal,
  { all = false, ...sweep }: Sweep & { readonly all?: boolean } = {},
): Promise<readonly string[]> {
  const found = await findAll(context, { timeoutMs: listMs, ...sweep }, signal);
  const adopted = all ? new Set<string>() : await adoptUnknown(context, found, signal);
  // A lost or replaced database lacks the service. Its machines may serve; `svc controller sweep` can remove them.
  if (!all && (await context.store.services.get(context.name, context.key)) === undefined) return [];
  // Read after the machines: a replica is recorded before its machine is requested.
  const replicas = all ? [] : await context.store.replicas.list(context.name);
  const known = new Map(replicas.filter((replica) => !isEnded(replica.state)).map((replica) => [String(replica.id), replica]));
  const clear = async ({ provider, denied, machines = [], failure }: Found): Promise<string | undefined> => {
    if (failure !== undefined) return failure;
    try {
      for (const machine of machines) {
        const replica = known.get(machine.tags['svc-replica'] ?? '');
        if (adopted.has(machine.id) || (replica !== undefined && mayOwn(replica, machine, provider.name))) continue;
        await provider.destroy(machine.id, { signal });
        const message = `Machine ${machine.id} of ${provider.name} belonged to no replica and was removed.`;
        const at = context.clock.now();
        await context.store.events.append(subjectEvent(context, { at, cause: 'orphan-removed', message }));
      }
      if (!all) return undefined;
      await provider.release(context.key, { signal, onDenied: (error) => void denied.add(error.message) });
      for (const reason of denied) await reportDenied(context, reason);
      return undefined;
    } catch (error) {
      if (!signal.aborted) context.log.warn({ err: error, provider: provider.name }, 'a left-over machine could not be removed');
      return `${provider.name} does not remove everything: ${messageOf(error)}`;
    }
  };
  const failures = await Promise.all(found.map(clear));
  return [...failures, all ? await removeBuckets(context, signal) : undefined].filter((failure) => failure !== undefined);
}

/** The account may have lost the region for ever, so this does not keep the service. */
async function reportDenied(context: ServiceContext, reason: string): Promise<void> {
  const message = `${asSentence(reason)} What the service has in that region was not removed. Machines there may run and be billed.`;
  context.log.warn({ reason }, 'a region denies access, so what the service has there was not removed');
  await context.store.events.append(subjectEvent(context, { at: context.clock.now(), cause: 'region-denied', message }));
}

/** How long after a restore to search for replicas that the copy lacks, ms. By then they are adopted or gone. */
const restoredMs = 86_400_000;

/** Runs before the first pass over a restored database: otherwise the first endpoint set would lack these replicas. */
export async function adoptAfterRestore(context: ServiceContext, signal: AbortSignal): Promise<void> {
  const { store, clock } = context;
  const restoredAt = await store.restoredAt();
  if (restoredAt === null || clock.now() - restoredAt > restoredMs) return;
  await adoptUnknown(context, await findAll(context, { timeoutMs: listFirstMs }, signal), signal);
}

/**
 * Adopts replicas whose ids this database has never assigned. A replica is recorded, with an event, before its machine
 * is requested, so the database must be a restored copy from before their launch. Returns the ids of their machines.
 * The next sweep adopts replicas that could not be recorded.
 */
async function adoptUnknown(context: ServiceContext, found: readonly Found[], signal: AbortSignal): Promise<ReadonlySet<string>> {
  const { store, name, key, clock, log } = context;
  const service = await store.services.get(name, key);
  if (service === undefined || service.desired === 'down') return new Set();
  const { service: spec } = await context.task(service.version);
  if (spec === undefined) return new Set();
  const unknown = await unknownReplicas(context, found);
  const addresses = unknown.map(async (one) => {
    const ask = (inner: AbortSignal): Promise<ReplicaAddress> =>
      one.provider.remote(one.machine.id).address(spec.replicaPort, { signal: inner });
    const noAnswer = (): Error => new Error(`no answer within ${addressMs / 1_000} s`);
    const address = await withDeadline(clock, addressMs, ask, noAnswer, signal).catch((error: unknown) => {
      log.warn({ err: error, machine: one.machine.id }, 'a machine of an unknown replica cannot be reached');
      return null;
    });
    return { ...one, address };
  });
  for (const one of await Promise.all(addresses)) {
    if (signal.aborted) break;
    try {
      await adopt(context, one);
    } catch (error) {
      log.warn({ err: error, machine: one.machine.id }, 'a replica could not be adopted after a restore');
    }
  }
  if (unknown.length > 0) context.wake();
  return new Set(unknown.map(({ machine }) => machine.id));
}

interface UnknownReplica {
  readonly id: number;
  readonly provider: Provider;
  readonly machine: ListedMachine;
}

async function unknownReplicas({ store, name, key }: ServiceContext, found: readonly Found[]): Promise<readonly UnknownReplica[]> {
  const recorded = new Set((await store.replicas.list(name)).map(({ id }) => id));
  const unrecorded = found
    .flatMap(({ provider, machines = [] }) => machines.map((machine) => ({ id: Number(machine.tags['svc-replica']), provider, machine })))
    .filter(({ id }) => Number.isInteger(id) && id > 0 && !recorded.has(id));
  const known = await Promise.all(unrecorded.map(({ id }) => store.events.knows(key, id)));
  return unrecorded.filter((_, index) => known[index] === false);
}

/**
 * Probes the replica: its program may already serve. While its machine is unreachable, launches the replica on it
 * again. That keeps the machine's id and does not stop the program.
 */
async function adopt(
  context: ServiceContext,
  { id, provider, machine, address }: UnknownReplica & { readonly address: ReplicaAddress | null },
): Promise<void> {
  const { store, name, key, clock } = context;
  const replicas = await store.replicas.list(name);
  // Of two machines for one replica, the second is surplus.
  if (replicas.some((replica) => replica.id === id)) return;
  const known = replicas.find(({ offer }) => offer?.provider === provider.name)?.offer;
  const add = (service: ServiceRecord): Promise<ServiceRecord | undefined> | undefined => {
    if (service.desired === 'down') return undefined;
    const now = clock.now();
    const replica = newReplica(service, {
      id,
      key: machine.tags['svc-key'] ?? `${key}-${id}`,
      createdAt: now,
      launchedAt: now,
      offer: known ?? { ...unknownOffer, provider: provider.name, region: provider.name },
      machineId: machine.id,
      // A formerly ready replica joins the first endpoint set and is not surplus beside lost ones. A probe follows at
      // once.
      ...(address === null
        ? { state: 'PROVISIONING' as const }
        : { state: 'READY' as const, address, startedAt: now, firstReadyAt: now, readySince: now }),
    });
    const message = `Machine ${machine.id} of ${provider.name} belongs to replica ${id}, which the state database did not know: it was restored from an older copy. The replica was adopted.`;
    const event = subjectEvent(service, { at: now, to: replica.state, cause: 'adopted', message });
    return store.replicas.add(service, replica, { ...event, replicaId: id });
  };
  await compareAndSwap(() => store.services.get(name, key), add);
}

const unknownOffer = { zone: null, instanceType: 'unknown', resources: 'unknown', gpus: 0, spot: false, hourlyUsd: 0 } as const;

/** Returns undefined when no bucket is left. */
async function removeBuckets(context: ServiceContext, signal: AbortSignal): Promise<string | undefined> {
  try {
    await context.deployment.remove(signal);
    return undefined;
  } catch (error) {
    if (!signal.aborted) context.log.warn({ err: error }, 'a bucket could not be removed');
    return `A bucket cannot be removed: ${messageOf(error)}`;
  }
}

/** A replica without a machine may still get any of the requested ones. Once it has one, the others are surplus. */
function mayOwn({ offer, machineId }: ReplicaRecord, machine: ListedMachine, provider: string): boolean {
  return machineId === null || (machine.id === machineId && offer?.provider === provider);
}

/** The enabled providers, and those with recorded replicas, enabled or not. */
async function sweptProviders(context: ServiceContext, known?: readonly Provider[]): Promise<readonly Provider[]> {
  const enabled = known ?? (await context.providers());
  const recorded = (await context.store.replicas.list(context.name)).flatMap(({ offer }) => offer?.provider ?? []);
  const missing = new Set(recorded.filter((name) => !enabled.some((provider) => provider.name === name)));
  return [...enabled, ...(await Promise.all([...missing].map((name) => context.provider(name))))];
}

const sweepEveryMs = 60_000;

/** The longest time between two full sweeps, in sweeps. */
const sweepsPerFull = 60;

/**
 * A full sweep checks which providers are enabled and asks every SSH host. In the others, no service asks SSH hosts where
 * it has no machine. After the start of a process they come in pauses of 1, 1, 2, 4 … sweeps: a provider may become
 * usable only minutes after a boot.
 */
const isFullSweep = (number: number): boolean => (number & (number - 1)) === 0 || number % sweepsPerFull === 0;

/** Searches in a loop of its own: a slow provider must not delay the detection of lost machines. */
export function orphanLoop(context: ServiceContext): Loop {
  let sweeps = 0;
  let enabled: readonly Provider[] = [];
  return {
    name: 'orphans',
    everyMs: sweepEveryMs,
    async tick(signal) {
      const isFull = isFullSweep(sweeps);
      if (isFull) enabled = await context.providers();
      const failures = await removeOrphans(context, signal, { enabled, requestedOnly: !isFull });
      // A full sweep that failed is repeated.
      if (!isFull || failures.length === 0) sweeps += 1;
    },
  };
}
