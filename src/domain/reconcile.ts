import { canonicalJson } from '../shared/json.ts';
import { decideTarget, initialAutoscaler, nextDecisionMs, requestRate, withinBounds } from './autoscale.ts';
import { enginesOf, signalsOf } from './autoscale-signals.ts';
import { budgetOf, forgetBudget, reportBudget } from './cost-limit.ts';
import { describeEngines } from './engine-metrics.ts';
import { Draft, type Decision, type Launch, type World } from './decision.ts';
import { countReplicas, type PlannedReplica } from './plan.ts';
import { type ReplicaRecord, type ServiceRecord, subjectEvent } from './records.ts';
import { launchGate, type LaunchGate } from './replica/crash-loop.ts';
import { interruptedToDrain } from './replica/interruptions.ts';
import { movedToDrain, replicasToMove } from './replica/rebalance.ts';
import { fleetOf, withCapacity } from './replica/replica-capacity.ts';
import { sleepOrWake } from './replica/sleep.ts';
import { policyAt } from './replica-schedule.ts';
import type { ReplicaEnd } from './replica/replica-report.ts';
import { finalStates, isAlive, isEnded, isFailed } from './replica/replica-state.ts';
import { silentToEnd } from './replica/silent-machines.ts';
import { attemptsAtOnce, isRolledOut, isSameProbe, isSameProgram, planRollout, provenVersionOf, surgeOf } from './rollout.ts';
import { firstToEnd } from './spot/hedge.ts';
import { marketOf, type MarketCounts } from './spot/markets.ts';
import { hedgeFor, splitByMarket, spotWait } from './spot/split-by-market.ts';
import { serviceState, type ServiceState } from './service-state.ts';
import type { ReplicaPolicy, Task } from './task.ts';
import { unansweringReplicas, withoutReplacement } from './unanswering.ts';
import { advanceUpdate, isAccepted, isBlueGreen, isStaged, withdrawShare } from './update-stage.ts';

/** Decides the next actions for a service. Pure: the same world gives the same decision. */
export function reconcile(world: World): Decision {
  const draft = new Draft(world);
  applyEnds(draft);
  adoptReplicas(draft);
  recordProven(draft);
  if (world.service.desired === 'down') return removed(draft);
  const task = world.versions.get(world.service.version);
  if (task?.service === undefined) return draft.decision();
  const { gracefulTerminationSeconds } = task.service;
  const replicaPolicy = policyAt(task.service.replicaPolicy, world.now);
  const unanswering = unansweringReplicas(draft, replicaPolicy);
  const interrupted = draft.living.flatMap(({ id, state }) => {
    const { notice } = draft.report(id);
    return notice === undefined ? [] : [{ id, state, notice }];
  });
  const replaced = new Set([...unanswering, ...interrupted].map(({ id }) => id));
  const present = draft.replicas.filter(({ id }) => !replaced.has(id));
  const target = autoscale(draft, { task, policy: replicaPolicy }, present);
  const desired = target === 0 && replicaPolicy.minReplicas === 0 ? 0 : target + replicaPolicy.numOverprovision;
  const sleeper = sleepOrWake(draft, present, { policy: replicaPolicy, desired });
  const serving = draft.replicas.filter(({ id }) => !replaced.has(id) && id !== sleeper);
  const worked = workedVersion(draft);
  const fallback = fallbackOf(draft);
  // Overprovisioned spot replicas have no fallback: without spot, an update must not wait for them.
  const enough = task.resources.choices.some(({ useSpot }) => useSpot) ? target : desired;
  const stage = advanceUpdate(draft, { policy: task.service.update, target: desired, enough, fallback, remaining: serving });
  const { waiting, replaced: onDemand } = spotWait(world, serving, surgeOf(stage, desired));
  // Replicas that wait for a refused spot machine must not keep on-demand ones from being launched.
  const limits = stage.most === undefined ? stage : { ...stage, most: stage.most + waiting };
  const gateFor = (version: number): LaunchGate =>
    gateOf(draft.service, version, attemptsAtOnce({ target: desired, fallback, limits }), world.now);
  const { gaveUp } = gateFor(world.service.version);
  if (gaveUp) withdrawShare(draft);
  // A version that never worked leaves the service to the last one that did.
  const goal =
    gaveUp && worked !== undefined
      ? { target: desired, version: worked, fallback: undefined, limits: task.service.update }
      : { target: desired, version: world.service.version, fallback, limits };
  // During an update, the new replicas are the replacements.
  const recommended = serving.filter(({ id }) => draft.memory.update === undefined && draft.report(id).recommendation !== undefined);
  const moved = replicasToMove(recommended, desired, { policy: replicaPolicy, update: task.service.update });
  const remaining = serving.filter((replica) => !moved.includes(replica));
  const isApart = isBlueGreen(draft.memory, fallback);
  const launched = [goal.version, goal.fallback ?? goal.version];
  const markets = splitByMarket(world, { launched, remaining, moved, isApart, replaced: onDemand, target, desired });
  const lost = withoutReplacement(unanswering, remaining);
  scale(draft, task, { remaining, goal: { ...goal, markets, atLeast: target }, gateFor, lost });
  const readyOthers = serving.filter(({ state }) => state === 'READY').length;
  const facts = { readyOthers, desired, graceMs: gracefulTerminationSeconds * 1_000, now: world.now };
  for (const id of interruptedToDrain(interrupted, facts))
    draft.stop(id, { cause: 'interruption', reason: draft.report(id).notice?.reason ?? '' });
  const readyUnmoved = remaining.filter(({ state }) => state === 'READY').length;
  for (const id of movedToDrain(moved, readyUnmoved, desired))
    draft.stop(id, { cause: 'interruption', reason: draft.report(id).recommendation ?? '' });
  for (const { id, end } of silentToEnd(unanswering, readyOthers, desired)) draft.stop(id, end);
  finishUpdate(draft, desired);
  reportState(draft, desired, gaveUp);
  return draft.decision();
}

/** Stops replicas whose end was reported or requested by a user. */
function applyEnds(draft: Draft): void {
  const { firstReadyAt } = draft.world.service;
  for (const { id, state, endRequestedAt } of draft.replicas) {
    const { end } = draft.report(id);
    if (end !== undefined && isAlive(state)) draft.stop(id, end);
    else if (endRequestedAt !== null && (isAlive(state) || state === 'UNKNOWN'))
      draft.stop(id, { cause: 'user', reason: 'A user terminated it.' });
  }
  const readyTimes = draft.replicas.flatMap((replica) => replica.firstReadyAt ?? []);
  if (firstReadyAt === null && readyTimes.length > 0) draft.patch({ firstReadyAt: Math.min(...readyTimes) });
}

/**
 * After an update that changes nothing for replicas, they belong to the new version. If it changes their probe, the ready
 * ones are adopted one by one, each after the one before has passed: a wrong probe must not take all of them.
 */
function adoptReplicas(draft: Draft): void {
  const { service, versions, now } = draft.world;
  const task = versions.get(service.version);
  // After the guard gave up, replicas of the earlier version are wanted.
  if (task === undefined || draft.memory.gaveUp) return;
  for (const replica of draft.living.filter(({ version }) => isTakenOver(draft.world, version))) {
    const own = versions.get(replica.version);
    const isProbedAlike = own !== undefined && isSameProbe(own, task);
    if (isProbedAlike || replica.state !== 'READY') draft.adopt(replica);
    else if (
      draft.memory.update?.adoptedAt !== now &&
      draft.living.every(({ version, state }) => version !== service.version || state === 'READY') &&
      isAdoptionSettled(draft, task)
    ) {
      draft.adopt(replica);
      const update = draft.memory.update ?? { from: replica.version, at: now };
      draft.patch({ memory: { ...draft.memory, update: { ...update, adoptedAt: now } } });
    }
  }
}

/** Whether the service's version runs the same program as this other version. */
function isTakenOver({ service, versions }: World, version: number): boolean {
  const [task, own] = [versions.get(service.version), versions.get(version)];
  if (version === service.version || task === undefined || own === undefined) return false;
  return isSameProgram({ version, task: own }, { version: service.version, task });
}

/** Whether the last adopted replica has been probed as the new version says. Otherwise a later pass decides. */
function isAdoptionSettled(draft: Draft, task: Task): boolean {
  const adoptedAt = draft.world.service.memory.update?.adoptedAt;
  if (adoptedAt === undefined || task.service === undefined) return true;
  const { intervalSeconds, timeoutSeconds } = task.service.readinessProbe;
  const settledAt = adoptedAt + (intervalSeconds + timeoutSeconds) * 1_000;
  if (settledAt > draft.world.now) draft.wakeAt = settledAt;
  return settledAt <= draft.world.now;
}

function recordProven(draft: Draft): void {
  const { service, versions } = draft.world;
  const task = versions.get(service.version);
  const before = provenVersionOf(draft.service);
  if (task === undefined || (before === service.version && draft.memory.provenVersion !== undefined)) return;
  const { update } = draft.memory;
  if (update !== undefined && isStaged(draft.memory, fallbackOf(draft)) && !isAccepted(update)) return;
  // An adopted replica was ready with another probe.
  const isAdopting = draft.memory.update?.adoptedAt !== undefined;
  const isSettled = !isAdopting || (service.memory.update?.adoptedAt !== undefined && isAdoptionSettled(draft, task));
  const hasWorked = ({ version, firstReadyAt, state }: ReplicaRecord): boolean =>
    version === service.version && firstReadyAt !== null && (!isAdopting || state === 'READY');
  if (!isSettled || !draft.replicas.some(hasWorked)) return;
  const provenBefore = before === service.version || before === 0 ? {} : { provenBefore: before };
  draft.patch({ memory: { ...draft.memory, provenVersion: service.version, ...provenBefore } });
}

/** The last version that worked, while the service's version has not; undefined when there is none. */
function workedVersion(draft: Draft): number | undefined {
  const proven = provenVersionOf(draft.service);
  return proven !== draft.world.service.version && draft.world.versions.has(proven) ? proven : undefined;
}

/**
 * The version that serves until the service's version has worked; undefined when there is none. Of the same program with
 * another probe, no version is safer than the other until the guard gives up.
 */
function fallbackOf(draft: Draft): number | undefined {
  const worked = workedVersion(draft);
  return worked !== undefined && isTakenOver(draft.world, worked) ? undefined : worked;
}

/** Ends an update once all replicas are of the service's version. */
function finishUpdate(draft: Draft, target: number): void {
  const { service, now } = draft.world;
  const { update } = draft.memory;
  if (update === undefined || draft.memory.gaveUp || !isRolledOut(draft.replicas, { target, version: service.version })) return;
  // Without replicas, a held update waits, and so does one whose version got only a share of the requests.
  const isUnderWay = update.paused !== undefined || (update.share !== undefined && !isAccepted(update));
  if (isUnderWay) return;
  draft.patch({ reason: null, memory: { ...draft.memory, update: undefined } });
  const seconds = Math.max(0, Math.round((now - update.at) / 1_000));
  const message = `The update from version ${update.from} to ${service.version} is complete after ${seconds} s.`;
  draft.event({ at: now, cause: 'updated', message });
}

/** The number of replicas that the load requires, within the bounds of the policy and without overprovisioning. */
function autoscale(
  draft: Draft,
  { task, policy }: { readonly task: Task; readonly policy: ReplicaPolicy },
  remaining: readonly ReplicaRecord[],
): number {
  const { load } = draft.world;
  const known = draft.memory.autoscaler;
  const before = known === null ? initialAutoscaler(policy) : { ...known, target: withinBounds(policy, known.target) };
  if (known !== null && known.target !== before.target) {
    draft.patch({ memory: { ...draft.memory, autoscaler: before } });
    const bounds = `The bounds are ${policy.minReplicas} to ${policy.maxReplicas} replicas`;
    recordScaling(draft, `${bounds}: from ${known.target} to ${countReplicas(before.target)}.`);
  }
  if (load === undefined) return withinBounds(policy, before.target);
  const engines = enginesOf(draft.world, draft.replicas, policy);
  const signals = signalsOf(load, draft.replicas, engines);
  const after = decideTarget(before, policy, { ...load, fleet: fleetOf(task, remaining), ...(signals && { signals }) });
  draft.nextLoadMs = nextDecisionMs(after, policy);
  if (known === null || canonicalJson(known) !== canonicalJson(after)) draft.patch({ memory: { ...draft.memory, autoscaler: after } });
  if (after.target !== before.target) {
    const rate = `${requestRate(load).toFixed(2)} requests/s in the last minute`;
    const by = policy.autoscaler === undefined ? '' : ` (${policy.autoscaler})`;
    const busy = load.busy === 0 ? rate : `${rate}, ${load.busy} queued or in flight`;
    const reason = engines === undefined ? busy : `${busy}, ${describeEngines(engines)}`;
    recordScaling(draft, `${reason}${by}: from ${before.target} to ${countReplicas(after.target)}.`);
  }
  return after.target;
}

/** The event says it once; the status shows the last one. */
function recordScaling(draft: Draft, reason: string): void {
  const { now: at } = draft.world;
  draft.event({ at, cause: 'autoscale', message: reason });
  draft.patch({ memory: { ...draft.memory, scaled: { at, reason } } });
}

/**
 * The guard of launches of a version. The service record remembers that the guard gave up on the service's version,
 * because the failures that caused it expire.
 */
function gateOf(service: ServiceRecord, version: number, attempts: number, now: number): LaunchGate {
  const { memory } = service;
  const failures = memory.failures.filter((failure) => failure.version === undefined || failure.version === version);
  const hasWorked = version <= provenVersionOf(service);
  const gate = launchGate(failures, attempts, hasWorked, now);
  const isStopped = memory.gaveUp || (memory.update?.rejected !== undefined && version === service.version);
  return { ...gate, gaveUp: gate.gaveUp || (isStopped && !hasWorked) };
}

/** Launches missing replicas, as far as the crash-loop guard allows, and stops surplus ones and those of other versions. */
function scale(
  draft: Draft,
  task: Task,
  {
    remaining,
    goal,
    gateFor,
    lost,
  }: {
    readonly remaining: readonly ReplicaRecord[];
    readonly goal: Parameters<typeof planRollout>[1];
    readonly gateFor: (version: number) => LaunchGate;
    /** See `withoutReplacement`. */
    readonly lost: readonly string[];
  },
): void {
  const { now, isInventoryKnown, service, inFlight } = draft.world;
  const facts = hedgeFor(draft.world, goal.version, remaining, goal.target);
  const endsFirst = facts && firstToEnd(facts);
  const planned = withCapacity(
    task,
    remaining.filter(({ state }) => isAlive(state)),
  ).map((replica) => {
    const { type } = draft.report(replica.id).machine;
    // A replica that waits for its adoption is not replaced.
    const isWaiting = goal.version === service.version && isTakenOver(draft.world, replica.version);
    const version = isWaiting ? service.version : replica.version;
    const market = marketOf(replica);
    const isFirst = replica.id === endsFirst?.id;
    return {
      ...replica,
      version,
      market,
      endsFirst: isFirst,
      inFlight: inFlight?.[replica.id] ?? 0,
      mustKeep: type === 'silent',
      isUnseen: type === 'unseen',
    } satisfies PlannedReplica;
  });
  const actions = planRollout(planned, goal);
  const wanted = goal.markets?.get(goal.version);
  const desiredText = `The service is to have ${countReplicas(goal.target)}${describeSplit(wanted)}`;
  const versionOf = new Map(planned.map((replica) => [replica.id, replica.version]));
  const whyStopped = (id: number): ReplicaEnd =>
    versionOf.get(id) === goal.version
      ? { cause: 'scale-down', reason: `${desiredText}; this one is surplus.` }
      : { cause: 'update', reason: `Version ${goal.version} takes the place of version ${versionOf.get(id)}.` };
  const gates = new Map([goal.version, goal.fallback ?? goal.version].map((version) => [version, gateFor(version)]));
  const launched = new Map<number, number>();
  const budget = budgetOf(task.service?.maxHourlyCost, draft.replicas);
  const delayed: Pick<Launch, 'version' | 'market'>[] = [];
  for (const action of actions) {
    if (action.type === 'stop') {
      if (isInventoryKnown) draft.stop(action.replicaId, whyStopped(action.replicaId));
      continue;
    }
    const { version, market } = action;
    const gate = gates.get(version) ?? gateFor(version);
    const living = planned.filter((replica) => replica.version === version).length + (launched.get(version) ?? 0);
    if (gate.notBefore > now) draft.wakeAt = Math.min(draft.wakeAt ?? Number.POSITIVE_INFINITY, gate.notBefore);
    if (gate.gaveUp) continue;
    if (living >= gate.atMost || gate.notBefore > now) {
      delayed.push({ version, market });
      continue;
    }
    if (!budget.allows({ version, market })) continue;
    launched.set(version, (launched.get(version) ?? 0) + 1);
    const inPlaceOf = lost[draft.launches];
    const reason = inPlaceOf === undefined ? `${desiredText}.` : `${inPlaceOf}; replica ${draft.nextReplicaId} is launched in its place.`;
    draft.launch({ version, market, reason });
  }
  // Without these, the limit would seem to end with each backoff.
  for (const launch of delayed) budget.allows(launch);
  reportBudget(draft, budget.refused, { desiredText, limitUsd: task.service?.maxHourlyCost ?? 0 });
}

function describeSplit(wanted: MarketCounts | undefined): string {
  return wanted === undefined || wanted.onDemand === 0 ? '' : ` (now ${wanted.spot} spot and ${wanted.onDemand} on demand)`;
}

function reportState(draft: Draft, desired: number, gaveUp: boolean): void {
  const { service, now } = draft.world;
  const { replicas, memory } = draft;
  const isDown = service.desired === 'down';
  const fallback = workedVersion(draft);
  const isStopped = gaveUp && fallback !== undefined && !isDown;
  const state: ServiceState = serviceState({
    replicas: replicas.map((replica) => replica.state),
    target: desired,
    initialised: true,
    shuttingDown: isDown,
    cleanupFailed: isDown && replicas.some((replica) => replica.state === 'FAILED_CLEANUP'),
    processesFailed: service.processesFailed,
    gaveUp: gaveUp && !isStopped,
  });
  if (state === service.state && memory.initialised && memory.gaveUp === gaveUp) return;
  const stopped = !isStopped ? null : memory.gaveUp ? service.reason : whyUpdateStopped(draft.service, fallback, replicas);
  const reason = stopped ?? (state === 'FAILED' && gaveUp ? whyGivenUp(service.name, replicas) : null);
  draft.patch({ state, reason, memory: { ...memory, initialised: true, gaveUp } });
  if (isStopped && !memory.gaveUp) draft.event({ at: now, cause: 'update-stopped', message: stopped ?? '' });
  if (state === service.state) return;
  const message = isStopped ? `The service is ${state}.` : (reason ?? `The service is ${state}.`);
  draft.event({ at: now, from: service.state, to: state, cause: gaveUp && !isStopped ? 'gave-up' : 'derived', message });
}

function whyUpdateStopped({ name, version, memory }: ServiceRecord, fallback: number, replicas: readonly ReplicaRecord[]): string {
  const { rejected } = memory.update ?? {};
  if (rejected !== undefined)
    return `The canary of version ${version} was rolled back, and version ${fallback} serves all requests. ${rejected}`;
  const what = `The update to version ${version} stopped, because none of its replicas became ready; version ${fallback} stays`;
  return withLastFailure(
    what,
    name,
    replicas.filter((replica) => replica.version === version),
  );
}

function whyGivenUp(service: string, replicas: readonly ReplicaRecord[]): string {
  return withLastFailure('No replica ever became ready, and no more are launched', service, replicas);
}

function withLastFailure(what: string, service: string, replicas: readonly ReplicaRecord[]): string {
  const last = replicas.findLast(
    ({ reason, state, endCause }) =>
      reason !== null && isFailed(state === 'SHUTTING_DOWN' && endCause !== null ? finalStates[endCause] : state),
  );
  return last === undefined ? `${what}.` : `${what} (see: svc serve logs ${service} ${last.id}). Replica ${last.id}: ${last.reason}`;
}

/** Terminates the replicas, searches the providers for remaining resources, then drops the service's records. */
function removed(draft: Draft): Decision {
  const { service, now, leftovers } = draft.world;
  for (const { id, state } of draft.replicas)
    // A failed termination is retried in each pass.
    if (isAlive(state) || state === 'UNKNOWN') draft.stop(id, { cause: 'service-down', reason: 'The service is being terminated.' });
  forgetBudget(draft);
  reportState(draft, 0, false);
  const left = draft.replicas.filter(({ state }) => !isEnded(state));
  const isGivenUp = service.purge && left.every(({ state }) => state === 'FAILED_CLEANUP');
  if (left.length === 0 || isGivenUp) {
    const isForgotten = leftovers === 'none' || (leftovers !== 'unknown' && service.purge);
    if (typeof leftovers === 'object' && leftovers.reason !== service.reason) draft.patch({ reason: leftovers.reason });
    const message =
      left.length === 0
        ? 'Nothing is left of it.'
        : `Its records were removed by force; machines of ${countReplicas(left.length)} may still exist.`;
    draft.removal = isForgotten ? subjectEvent(service, { at: now, from: service.state, cause: 'down', message }) : 'search';
  }
  return draft.decision();
}
