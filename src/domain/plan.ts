import type { Market } from './placement.ts';
import { isAlive, type aliveStates, type ReplicaState } from './replica/replica-state.ts';

/** The fields of a replica that planning needs. */
export interface PlannedReplica {
  readonly id: number;
  readonly version: number;
  readonly state: ReplicaState;
  /** Absent where the versions' files leave the market to the search. */
  readonly market?: Market | null;
  /** Whether it ends before others in its state: its zone adds the most price and risk. */
  readonly endsFirst?: boolean;
  /** Capacity in requests per second, where replicas differ. */
  readonly qps?: number;
  /** Price of its machine, US dollars. */
  readonly hourlyUsd?: number;
  readonly inFlight?: number;
  /** Its machine is silent: nothing would confirm that its program ends, so another replica is stopped instead. */
  readonly mustKeep?: boolean;
  /** Whether its provider has not described its machine since this process started. */
  readonly isUnseen?: boolean;
}

type Action = { readonly type: 'launch' } | { readonly type: 'stop'; readonly replicaId: number };

/**
 * Actions that bring a service to `target` living replicas. Those to stop are the last ones in `keepOrder`. A chosen
 * replica that is unseen and NOT_READY is kept, because its machine may be silent. No other one is stopped instead,
 * because that one may serve. While requests run, the last ready replica is kept.
 */
export function planReplicas(observed: readonly PlannedReplica[], target: number): readonly Action[] {
  const living = observed.filter((replica) => isAlive(replica.state));
  const missing = target - living.length;
  if (missing >= 0) return Array.from({ length: missing }, () => ({ type: 'launch' }) as const);
  const stopped = keepOrder(living)
    .toReversed()
    .filter(({ mustKeep }) => mustKeep !== true)
    .slice(0, -missing);
  return stopped
    .filter((replica) => !mayBeSilent(replica) && replica !== lastToServe(living, stopped))
    .map((replica) => ({ type: 'stop', replicaId: replica.id }) as const);
}

/** The last replica that serves requests in flight. A silent machine does not serve. */
function lastToServe(living: readonly PlannedReplica[], stopped: readonly PlannedReplica[]): PlannedReplica | undefined {
  if (living.every(({ inFlight = 0 }) => inFlight === 0)) return undefined;
  const serving = living.filter(({ state, mustKeep }) => state === 'READY' && mustKeep !== true);
  return serving.every((replica) => stopped.includes(replica)) ? keepOrder(serving)[0] : undefined;
}

/** Whether a replica may be stopped: nothing would confirm the end of a program on a silent machine. */
export function mayStop(replica: PlannedReplica): boolean {
  return replica.mustKeep !== true && !mayBeSilent(replica);
}

const mayBeSilent = ({ state, isUnseen }: PlannedReplica): boolean => state === 'NOT_READY' && isUnseen === true;

/**
 * The living replicas, most useful first. A scale-down keeps the first ones. Order: the most ready, the newer version,
 * the cheaper for its capacity, the larger, the one with more requests in flight, the lower id.
 */
export function keepOrder<Replica extends PlannedReplica>(observed: readonly Replica[]): readonly Replica[] {
  return observed
    .filter((replica) => isAlive(replica.state))
    .toSorted(
      (a, b) =>
        usefulness(b.state) - usefulness(a.state) ||
        b.version - a.version ||
        endsLater(b) - endsLater(a) ||
        usdPerRequest(a) - usdPerRequest(b) ||
        (b.qps ?? 0) - (a.qps ?? 0) ||
        (b.inFlight ?? 0) - (a.inFlight ?? 0) ||
        a.id - b.id,
    );
}

const usdPerRequest = ({ hourlyUsd = 0, qps = 1 }: PlannedReplica): number => hourlyUsd / qps;
const endsLater = ({ endsFirst }: PlannedReplica): number => (endsFirst === true ? 0 : 1);

const order: readonly ReplicaState[] = [
  'PENDING',
  'PROVISIONING',
  'STARTING',
  'SLEEPING',
  'NOT_READY',
  'READY',
] satisfies (typeof aliveStates)[number][];
const usefulness = (state: ReplicaState): number => order.indexOf(state);

/** `1 replica`, `2 spare replicas`. */
export function countReplicas(count: number, kind?: string): string {
  return `${count}${kind === undefined ? '' : ` ${kind}`} ${count === 1 ? 'replica' : 'replicas'}`;
}
