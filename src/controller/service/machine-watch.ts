import { locationName } from '../../domain/location-name.ts';
import { refusalOf } from '../../domain/placement/refusals.ts';
import { isAlive } from '../../domain/replica/replica-state.ts';
import { assertMachineId, type MachineId, type Provider } from '../../providers/provider.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { SvcError } from '../../shared/errors.ts';
import type { Loop } from '../../shared/loop.ts';
import type { OfferRecord, ReplicaRecord } from '../../domain/records.ts';
import { lossOf, offerOf, type MachineLoss } from '../../provision/recorded-machines.ts';
import type { ServiceContext } from './service-context.ts';

/** The provider's report about a replica's machine. `loss` is undefined while nothing is wrong with the machine. */
export interface SeenMachine {
  readonly replicaId: number;
  readonly loss: MachineLoss | undefined;
}

interface MachineListener {
  /** Called for each machine of each answer. */
  seen(machine: SeenMachine): Promise<void>;
  /** Called once, when every provider with machines has answered or failed for the first time. */
  allAsked(): void;
}

interface WatchedMachine {
  readonly replicaId: number;
  readonly machineId: MachineId;
  readonly offer: OfferRecord;
}

function machineOf({ id, state, machineId, offer }: ReplicaRecord): readonly WatchedMachine[] {
  if (!isAlive(state) || machineId === null || offer === null) return [];
  assertMachineId(machineId);
  return [{ replicaId: id, machineId, offer }];
}

/** Asks a provider once about all its machines. A failed call says nothing about them. */
async function inspectProvider(
  context: ServiceContext,
  provider: Provider,
  machines: readonly WatchedMachine[],
  listener: MachineListener,
  signal: AbortSignal,
): Promise<void> {
  const statuses = await provider.inspect(
    machines.map(({ machineId }) => machineId),
    { signal },
  );
  for (const { replicaId, machineId, offer } of machines) {
    const loss = lossOf(statuses.get(machineId), `Its machine ${machineId} at ${locationName(offer)}`);
    if (loss === undefined) context.zones.running(offer);
    // A provider that reclaims spot machines has no capacity there: the replacement must try other zones first.
    else if (offer.spot && !('cause' in loss && loss.cause === 'machine-lost')) refuseOffer(context, offer, loss.reason);
    await listener.seen({ replicaId, loss });
  }
}

/** Keeps the offer refused while polls report the same. Each refusal is stored, so one is renewed only near its end. */
function refuseOffer({ history, clock }: ServiceContext, record: OfferRecord, reason: string): void {
  const [offer, now] = [offerOf(record), clock.now()];
  if (refusalOf(offer, history.memory.refusals, now + 2 * inspectEveryMs) !== undefined) return;
  history.refused(offer, { kind: 'capacity', scope: 'zone', reason }, now);
}

/** How often providers are asked whether machines still exist, ms; at once when a provider reports changes. */
const inspectEveryMs = 5_000;

/** A provider that has not answered for this long, ms, is asked again. */
const answerLimitMs = 60_000;
const noAnswer = (): Error => new SvcError('SVC_PLACE_FAILED', 'no answer');

/** Collects a burst of changes for this long, ms, as when a Kubernetes node fails with all its pods. */
const gatherMs = 25;

/** Subscribes to providers of current machines to detect a loss at once, also to new and reopened providers. */
class ProviderWatches {
  readonly #context: ServiceContext;
  readonly #wake: () => void;
  readonly #watched = new Map<string, { readonly provider: Provider; readonly stop: AbortController }>();
  #isGathering = false;

  constructor(context: ServiceContext, wake: () => void) {
    this.#context = context;
    this.#wake = wake;
  }

  /** Subscribes to exactly these providers. */
  follow(providers: readonly Provider[], signal: AbortSignal): void {
    for (const [name, { provider, stop }] of this.#watched) {
      if (providers.includes(provider)) continue;
      stop.abort();
      this.#watched.delete(name);
    }
    for (const provider of providers) {
      if (provider.watch === undefined || this.#watched.has(provider.name)) continue;
      const stop = new AbortController();
      this.#watched.set(provider.name, { provider, stop });
      provider.watch(() => this.#changed(), AbortSignal.any([signal, stop.signal]));
    }
  }

  #changed(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    this.#context.clock.after(gatherMs, () => {
      this.#isGathering = false;
      this.#wake();
    });
  }
}

/** Checks machines in a loop of its own, provider by provider: a slow provider delays nothing else. */
export function machineLoop(context: ServiceContext, listener: MachineListener, wake: () => void): Loop {
  const watches = new ProviderWatches(context, wake);
  const asking = new Set<string>();
  const again = new Set<string>();
  let isFirst = true;
  const ask = async (name: string, machines: readonly WatchedMachine[], signal: AbortSignal): Promise<void> => {
    if (asking.has(name)) {
      again.add(name);
      return;
    }
    asking.add(name);
    try {
      const provider = await context.provider(name);
      const inspect = (inner: AbortSignal): Promise<void> => inspectProvider(context, provider, machines, listener, inner);
      await withDeadline(context.clock, answerLimitMs, inspect, noAnswer, signal);
    } catch (error) {
      if (!signal.aborted) context.log.warn({ err: error, provider: name }, 'could not ask a provider about its machines');
    } finally {
      asking.delete(name);
      if (again.delete(name)) wake();
    }
  };
  return {
    name: 'machines',
    everyMs: inspectEveryMs,
    async tick(signal) {
      const machines = Map.groupBy((await context.store.replicas.list(context.name)).flatMap(machineOf), ({ offer }) => offer.provider);
      const opened = await Promise.allSettled([...machines.keys()].map((name) => context.provider(name)));
      watches.follow(
        opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])),
        signal,
      );
      // Not awaited: a provider that does not answer must not delay the next check of the others.
      const asked = Promise.all([...machines].map(([name, group]) => ask(name, group, signal)));
      if (isFirst) void asked.then(() => listener.allAsked());
      isFirst = false;
    },
  };
}
