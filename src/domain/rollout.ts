import { canonicalJson } from '../shared/json.ts';
import { perObject } from '../shared/per-object.ts';
import { keepOrder, mayStop, planReplicas, type PlannedReplica } from './plan.ts';
import { markets, type Market } from './placement.ts';
import type { ServiceRecord } from './records.ts';
import { isAlive } from './replica/replica-state.ts';
import { lackingMarkets, planMarkets, type MarketCounts } from './spot/markets.ts';
import type { Task, UpdatePolicy } from './task.ts';

/** How far a rollout may go at a time. */
export interface RolloutLimits extends Pick<UpdatePolicy, 'surge' | 'maxUnavailable'> {
  /** Ready replicas of the version that count as replacements of others; absent: all of them. */
  readonly replacing?: number;
  /** Most replicas of the version; absent: the target. */
  readonly most?: number;
}

/** The target of a rollout. */
interface RolloutGoal {
  /** Desired number of replicas. */
  readonly target: number;
  /** The version that all replicas shall have. */
  readonly version: number;
  /** The version that serves until a replica of `version` was ready; undefined afterwards, and when no version worked. */
  readonly fallback: number | undefined;
  readonly limits: RolloutLimits;
  /** Wanted replicas by market, of versions whose file does not leave the market to the search. */
  readonly markets?: ReadonlyMap<number, MarketCounts>;
  /** With markets: ready replicas below which no ready one ends as surplus. Absent: the target. */
  readonly atLeast?: number;
}

type RolloutAction =
  | { readonly type: 'launch'; readonly version: number; readonly market: Market | null }
  | { readonly type: 'stop'; readonly replicaId: number };

/**
 * Actions that bring a service to `target` living replicas of `version`, one step at a time; with markets, to the wanted
 * numbers of each. Beside another version, launches never raise the number of living replicas above these numbers and
 * the surge. Launches of `version` never raise the number of on-demand ones above the target and the surge. Stops of
 * other versions never leave fewer than `target - maxUnavailable` ready replicas. Until the version has worked, lost
 * replicas of the fallback are replaced by the fallback. A replica of another version that was never ready is stopped at
 * once.
 */
export function planRollout(
  observed: readonly PlannedReplica[],
  { target, version, fallback, limits, markets: split, atLeast = target }: RolloutGoal,
): readonly RolloutAction[] {
  const wanted = split?.get(version);
  const total = wanted === undefined ? target : wanted.spot + wanted.onDemand;
  const living = keepOrder(observed);
  const current = living.filter((replica) => replica.version === version);
  const others = living.filter((replica) => replica.version !== version);
  const readyCurrent = current.filter(({ state }) => state === 'READY').length;
  const isOnlyVersion = others.length === 0 && fallback === undefined;
  const needed = isOnlyVersion ? 0 : Math.max(0, target - limits.maxUnavailable - (limits.replacing ?? readyCurrent));
  const isTrusted = (replica: PlannedReplica): boolean => replica.state === 'READY' && replica.version === fallback;
  const candidates = others
    .filter((replica) => replica.state === 'READY' || replica.state === 'NOT_READY' || replica.version === fallback)
    // An update that takes the place of another one keeps the version that worked, not the one in between.
    .toSorted((a, b) => Number(isTrusted(b)) - Number(isTrusted(a)));
  const serving = wanted === undefined ? candidates : lackingFirst(candidates, current, wanted);
  const kept = new Set([...serving.slice(0, needed), ...others.filter((replica) => !mayStop(replica))]);
  const surge = surgeOf(limits, target);
  const replacements = fallback === undefined ? 0 : Math.max(0, needed - serving.length);
  const room = total + surge - kept.size - replacements;
  const most = isOnlyVersion ? Number.POSITIVE_INFINITY : Math.max(Math.min(limits.most ?? room, room), readyCurrent);
  const ofFallback = fallback === undefined ? undefined : split?.get(fallback);
  const served = others.filter((replica) => replica.version === fallback);
  const replacedIn =
    ofFallback === undefined ? Array.from({ length: replacements }, () => null) : lackingMarkets(served, ofFallback, replacements);
  const onDemand = [...kept].filter(({ market }) => market === 'on-demand').length + replacedIn.filter((one) => one === 'on-demand').length;
  // The wanted numbers include spot replicas that wait for a machine. Those make no room for on-demand ones.
  const mostOnDemand = isOnlyVersion ? Number.POSITIVE_INFINITY : Math.max(0, target + surge - onDemand);
  const actions =
    wanted === undefined
      ? planReplicas(current, Math.min(target, most)).map((action) => (action.type === 'launch' ? { ...action, market: null } : action))
      : planMarkets(current, wanted, { most, mostOnDemand, atLeast: isOnlyVersion ? atLeast : target });
  return [
    ...others.filter((replica) => !kept.has(replica)).map(({ id }) => ({ type: 'stop', replicaId: id }) as const),
    ...replacedIn.map((market) => ({ type: 'launch', version: fallback ?? version, market }) as const),
    ...actions.map((action) => (action.type === 'launch' ? { ...action, version } : action)),
  ];
}

function readyIn(replicas: readonly PlannedReplica[], market: Market): readonly PlannedReplica[] {
  return replicas.filter((one) => one.market === market && one.state === 'READY');
}

/** Replicas of other versions, first ready ones of a market in which the new version lacks ready replicas. */
function lackingFirst(
  others: readonly PlannedReplica[],
  current: readonly PlannedReplica[],
  wanted: MarketCounts,
): readonly PlannedReplica[] {
  const lacking = { spot: wanted.spot, 'on-demand': wanted.onDemand };
  const first = markets.flatMap((market) =>
    readyIn(others, market).slice(0, Math.max(0, lacking[market] - readyIn(current, market).length)),
  );
  return [...first, ...others.filter((one) => !first.includes(one))];
}

/** How many replicas of a version are tried at once: while another version serves, only those that an update adds. */
export function attemptsAtOnce({ target, fallback, limits }: Omit<RolloutGoal, 'version'>): number {
  return fallback === undefined ? target : Math.min(target, Math.max(1, surgeOf(limits, target) + limits.maxUnavailable));
}

/** Replicas that a rollout may have beyond the target, as a number. A share counts of the target, rounded up. */
export function surgeOf({ surge }: Pick<UpdatePolicy, 'surge'>, target: number): number {
  return typeof surge === 'number' ? surge : Math.ceil((target * surge.percent) / 100);
}

/** Most replicas that an update of its mode has beyond the target. */
export function mostSurge(update: UpdatePolicy, target: number): number {
  const surge = surgeOf(update, target);
  if (update.mode === 'rolling') return surge;
  return Math.max(update.mode === 'blue_green' ? target : 1, surge);
}

/** Replicas beyond the target without which an update waits: with `maxUnavailable`, a rolling one ends an old one first. */
export function neededSurge({ mode, maxUnavailable }: UpdatePolicy, target: number): number {
  if (mode === 'blue_green') return target;
  return mode === 'rolling' && maxUnavailable > 0 ? 0 : 1;
}

/** A share such as `25%`, of at most 100 %; undefined for any other text. */
export function shareOf(text: string): { readonly percent: number } | undefined {
  const percent = Number(/^(\d{1,3})%$/.exec(text)?.[1]);
  return percent <= 100 ? { percent } : undefined;
}

/** Whether an update can replace a replica: otherwise it may neither launch one more nor stop one first. */
export function canReplace({ surge, maxUnavailable }: Pick<UpdatePolicy, 'surge' | 'maxUnavailable'>): boolean {
  return maxUnavailable > 0 || (typeof surge === 'number' ? surge : surge.percent) > 0;
}

/** A version of a service with its task. */
export interface TaskVersion {
  readonly version: number;
  readonly task: Task;
}

/** The version whose copy of the working files a version uses. */
export function filesVersionOf({ version, task }: TaskVersion): number {
  return task.filesVersion ?? version;
}

/**
 * Whether replicas of two versions run the same program on the same kind of machine: the versions differ only in what
 * the controller and the balancer do. Such replicas need not be replaced.
 */
export function isSameProgram(a: TaskVersion, b: TaskVersion): boolean {
  // Each pass asks during an update.
  return filesVersionOf(a) === filesVersionOf(b) && programOf(a.task) === programOf(b.task);
}

/** Text that is equal for tasks with one program. Paths on the user's machine do not count; the copied files do. */
const programOf = perObject((task: Task): string => {
  const { workdir, fileMounts } = task;
  return canonicalJson({
    ...task,
    name: undefined,
    service: undefined,
    filesVersion: undefined,
    workdir: workdir?.kind === 'path' ? 'path' : workdir,
    fileMounts: fileMounts.map(({ target, source }) => ({ target, source: source.kind === 'path' ? 'path' : source })),
    port: task.service?.replicaPort,
  });
});

/** Whether an update from one version to another changes nothing at all. */
export function isSameVersion(a: TaskVersion, b: TaskVersion): boolean {
  return isSameProgram(a, b) && canonicalJson({ ...a.task.service }) === canonicalJson({ ...b.task.service });
}

/** Whether two versions are probed alike. */
export function isSameProbe(a: Task, b: Task): boolean {
  return probeOf(a) === probeOf(b);
}

const probeOf = perObject((task: Task): string => canonicalJson({ ...task.service?.readinessProbe }));

/** Whether all replicas that count for a service are ready and of its version. */
export function isRolledOut(observed: readonly PlannedReplica[], { target, version }: Pick<RolloutGoal, 'target' | 'version'>): boolean {
  const living = observed.filter(({ state }) => isAlive(state));
  return living.every((replica) => replica.version === version) && living.filter(({ state }) => state === 'READY').length >= target;
}

/** The newest version of which a replica was ever ready; 0: none. Services from before updates have only version 1. */
export function provenVersionOf({ memory, firstReadyAt }: Pick<ServiceRecord, 'memory' | 'firstReadyAt'>): number {
  return memory.provenVersion ?? (firstReadyAt === null ? 0 : 1);
}
