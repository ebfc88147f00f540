import { canonicalJson } from '../shared/json.ts';
import { keepOrder, planReplicas, type Action, type PlannedReplica } from './plan.ts';
import type { ServiceRecord } from './records.ts';
import { isAlive } from './replica/replica-state.ts';
import type { ServiceSpec, Task, UpdatePolicy } from './task.ts';

/** The target of a rollout. */
interface RolloutGoal {
  /** Desired number of replicas. */
  readonly target: number;
  /** The version that all replicas shall have. */
  readonly version: number;
  readonly limits: UpdatePolicy;
}

/**
 * Actions that bring a service to `target` living replicas of `version`, one step at a time. Launches never raise the
 * number of living replicas above `target + surge`. Stops of other versions never leave fewer than
 * `target - maxUnavailable` ready replicas. A replica of another version that was never ready is stopped at once.
 */
export function planRollout(observed: readonly PlannedReplica[], { target, version, limits }: RolloutGoal): readonly Action[] {
  const living = keepOrder(observed);
  const current = living.filter((replica) => replica.version === version);
  const others = living.filter((replica) => replica.version !== version);
  if (others.length === 0) return planReplicas(current, target);
  const readyCurrent = current.filter(({ state }) => state === 'READY').length;
  const needed = Math.max(0, target - limits.maxUnavailable - readyCurrent);
  const everReady = others.filter(({ state }) => state === 'READY' || state === 'NOT_READY');
  const kept = new Set([...everReady.slice(0, needed), ...others.filter(({ mustKeep }) => mustKeep === true)]);
  const stops = others.filter((replica) => !kept.has(replica)).map(({ id }) => ({ type: 'stop', replicaId: id }) as const);
  const room = Math.max(0, target + surgeOf(limits, target) - kept.size);
  return [...stops, ...planReplicas(current, Math.min(target, Math.max(room, readyCurrent)))];
}

/** Replicas that a rollout may have beyond the target, as a number. A share counts of the target, rounded up. */
export function surgeOf({ surge }: UpdatePolicy, target: number): number {
  return typeof surge === 'number' ? surge : Math.ceil((target * surge.percent) / 100);
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
  return canonicalJson(programOf(a)) === canonicalJson(programOf(b));
}

/** Paths on the user's machine do not count; the copied files do. */
function programOf({ version, task }: TaskVersion): object {
  const { workdir, fileMounts } = task;
  return {
    ...task,
    name: undefined,
    service: undefined,
    filesVersion: undefined,
    workdir: workdir?.kind === 'path' ? 'path' : workdir,
    fileMounts: fileMounts.map(({ target, source }) => ({ target, source: source.kind === 'path' ? 'path' : source })),
    files: filesVersionOf({ version, task }),
    port: task.service?.replicaPort,
  };
}

/** Whether an update from one version to another changes nothing at all. */
export function isSameVersion(a: TaskVersion, b: TaskVersion): boolean {
  return isSameProgram(a, b) && canonicalJson(withoutUpdate(a.task.service)) === canonicalJson(withoutUpdate(b.task.service));
}

/** How an update is made is no difference between versions. */
function withoutUpdate(spec: ServiceSpec | undefined): object {
  return { ...spec, update: undefined };
}

/** Whether all replicas that count for a service are ready and of its version. */
export function isRolledOut(observed: readonly PlannedReplica[], { target, version }: Omit<RolloutGoal, 'limits'>): boolean {
  const living = observed.filter(({ state }) => isAlive(state));
  return living.every((replica) => replica.version === version) && living.filter(({ state }) => state === 'READY').length >= target;
}

/** The version of which a replica was last ready; 0: none. Services from before updates have only version 1. */
export function provenVersionOf({ memory, firstReadyAt }: Pick<ServiceRecord, 'memory' | 'firstReadyAt'>): number {
  return memory.provenVersion ?? (firstReadyAt === null ? 0 : 1);
}
