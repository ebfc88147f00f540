import { placeName } from '../../domain/place-name.ts';
import { isAlive } from '../../domain/replica-state.ts';
import { assertMachineId, type MachineId, type Provider } from '../../providers/provider.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { SvcError } from '../../shared/errors.ts';
import type { Loop } from '../../shared/loop.ts';
import type { PlaceRecord, ReplicaRecord } from '../../store/records.ts';
import { offerOf } from '../recorded-machines.ts';
import { lossOf, type MachineLoss } from './machine-loss.ts';
import type { ServiceContext } from './service-context.ts';

/** A replica whose place says that its machine is gone, or will be. */
export interface LostMachine {
  readonly replicaId: number;
  readonly loss: Exclude<MachineLoss, { readonly type: 'doubtful' }>;
}

/** Who is told of lost machines. */
export type TellLost = (machine: LostMachine) => Promise<void>;

interface WatchedMachine {
  readonly replicaId: number;
  readonly machineId: MachineId;
  readonly place: PlaceRecord;
}

/** The machine of a living replica, as a list of one or none. */
function machineOf({ id, state, machineId, place }: ReplicaRecord): readonly WatchedMachine[] {
  if (!isAlive(state) || machineId === null || place === null) return [];
  assertMachineId(machineId);
  return [{ replicaId: id, machineId, place }];
}

/** Asks a place once about all machines there. One that cannot be asked says nothing about its machines. */
async function inspectPlace(
  context: ServiceContext,
  provider: Provider,
  machines: readonly WatchedMachine[],
  lost: TellLost,
  signal: AbortSignal,
): Promise<void> {
  const statuses = await provider.inspect(
    machines.map(({ machineId }) => machineId),
    { signal },
  );
  for (const { replicaId, machineId, place } of machines) {
    const loss = lossOf(statuses.get(machineId), `Its machine ${machineId} at ${placeName(place)}`);
    if (loss === undefined) continue;
    // Who takes spot machines back has none to give: the replacement is to be looked for elsewhere first.
    if (place.spot && !(loss.type === 'gone' && loss.cause === 'machine-lost'))
      context.history.refused(offerOf(place), { kind: 'capacity', scope: 'zone', reason: loss.reason }, context.clock.now());
    if (loss.type !== 'doubtful') await lost({ replicaId, loss });
  }
}

/** How often the places are asked whether machines still exist, ms. Those that can tell are asked as soon as they do. */
const inspectEveryMs = 5_000;

/** A place that has not answered for so long, ms, is asked anew. */
const answerLimitMs = 60_000;
const noAnswer = (): Error => new SvcError('SVC_PLACE_FAILED', 'no answer');

/** Changes come in bursts, as when a node goes with all that is on it: so long they are gathered, ms. */
const gatherMs = 25;

/** Listens to the places where machines are, so that a loss is known at once; follows places that come, go, or are opened anew. */
class PlaceWatches {
  readonly #context: ServiceContext;
  readonly #wake: () => void;
  readonly #watched = new Map<string, { readonly provider: Provider; readonly stop: AbortController }>();
  #isGathering = false;

  constructor(context: ServiceContext, wake: () => void) {
    this.#context = context;
    this.#wake = wake;
  }

  /** Listens to these from now on, and to no others. */
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

/** Looks after the machines in a loop of its own, place by place, so that one that is slow to answer holds nothing else up. */
export function machineLoop(context: ServiceContext, lost: TellLost, wake: () => void): Loop {
  const watches = new PlaceWatches(context, wake);
  const asking = new Set<string>();
  const again = new Set<string>();
  const ask = async (name: string, machines: readonly WatchedMachine[], signal: AbortSignal): Promise<void> => {
    if (asking.has(name)) {
      again.add(name);
      return;
    }
    asking.add(name);
    try {
      const provider = await context.provider(name);
      const look = (inner: AbortSignal): Promise<void> => inspectPlace(context, provider, machines, lost, inner);
      await withDeadline(context.clock, answerLimitMs, look, noAnswer, signal);
    } catch (error) {
      if (!signal.aborted) context.log.warn({ err: error, place: name }, 'a place could not be asked about its machines');
    } finally {
      asking.delete(name);
      if (again.delete(name)) wake();
    }
  };
  return {
    name: 'machines',
    everyMs: inspectEveryMs,
    async tick(signal) {
      const machines = Map.groupBy((await context.store.replicas.list(context.name)).flatMap(machineOf), ({ place }) => place.provider);
      const opened = await Promise.allSettled([...machines.keys()].map((name) => context.provider(name)));
      watches.follow(
        opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])),
        signal,
      );
      // Not waited for: the next look at other places must not be kept up by one that does not answer.
      for (const [name, group] of machines) void ask(name, group, signal);
    },
  };
}
