import type { Draft } from './decision.ts';
import type { ReplicaRecord, ServiceMemory, ServiceRecord, UpdateProgress } from './records.ts';
import { surgeOf, type RolloutLimits } from './rollout.ts';
import { isAlive } from './replica/replica-state.ts';
import type { UpdatePolicy } from './task.ts';

/** Failures of once-ready replicas of a canary after which it is rejected. One may be an accident. */
const failuresToReject = 2;

/** What an update needs to know to move on. */
interface StageFacts {
  readonly policy: UpdatePolicy;
  /** Desired number of replicas. */
  readonly target: number;
  /** Ready replicas of the new version with which `blue_green` may switch. */
  readonly enough: number;
  /** The version that serves while the new one is unproven; undefined: there is none. */
  readonly fallback: number | undefined;
  /** The replicas that count: without those that are interrupted or silent. */
  readonly remaining: readonly ReplicaRecord[];
}

/**
 * Whether requests move to the new version by its share, and not as its replicas become ready. Such a version has worked
 * only when it got all requests. Without a version that worked before, there is nothing to compare or to go back to.
 */
export function isStaged({ update }: Pick<ServiceMemory, 'update'>, fallback: number | undefined): boolean {
  return (update?.mode ?? 'rolling') !== 'rolling' && fallback !== undefined;
}

/** Whether two versions have all their replicas side by side. */
export function isBlueGreen(memory: Pick<ServiceMemory, 'update'>, fallback: number | undefined): boolean {
  return memory.update?.mode === 'blue_green' && isStaged(memory, fallback);
}

/** Whether the new version of a staged update has worked: it got all requests, and with blue-green for long enough. */
export function isAccepted({ mode, share, step }: UpdateProgress): boolean {
  return mode === 'blue_green' ? step === 1 : share === 1;
}

/** Moves the update in progress on: its share, its step, or its rejection. Returns how far replicas may be replaced. */
export function advanceUpdate(draft: Draft, facts: StageFacts): RolloutLimits {
  const { surge, maxUnavailable } = facts.policy;
  const limits = { surge, maxUnavailable };
  const { update, gaveUp } = draft.memory;
  // After a rejection the old version gets its replicas back; nothing moves on.
  if (update === undefined || gaveUp || update.rejected !== undefined) return limits;
  if (!isStaged(draft.memory, facts.fallback) || facts.target === 0) return heldBack(limits, draft, facts);
  return update.mode === 'canary' ? advanceCanary(draft, update, facts) : advanceBlueGreen(draft, update, facts);
}

/** While a user holds an update, replicas of the new version only replace lost ones. */
function heldBack(limits: RolloutLimits, draft: Draft, { target }: StageFacts): RolloutLimits {
  const { version, memory } = draft.service;
  const { paused } = memory.update ?? {};
  if (paused === undefined) return limits;
  const others = draft.living.filter((replica) => replica.version !== version).length;
  return { surge: limits.surge, maxUnavailable: 0, most: Math.max(paused.replicas, target - others) };
}

/**
 * All requests move when enough new replicas are ready. The old ones stay until all new ones were ready for as long as
 * the policy says, without a break.
 */
function advanceBlueGreen(draft: Draft, update: UpdateProgress, { policy, target, enough, remaining }: StageFacts): RolloutLimits {
  const { now } = draft.world;
  const { version } = draft.service;
  const areReady = readyOf(remaining, version) >= enough;
  const isSwitching = update.share !== 1 && update.paused === undefined && areReady;
  if (isSwitching) {
    progress(draft, { share: 1, stepAt: now });
    const message = `All requests go to version ${version}. The replicas of version ${update.from} stay for ${policy.bakeSeconds} s more.`;
    draft.event({ at: now, cause: 'update-switched', message });
  } else if (update.share === undefined) {
    progress(draft, { share: 0 });
  } else if (update.share === 1 && areReady !== (update.stepAt !== undefined)) {
    progress(draft, { stepAt: areReady ? now : undefined });
  }
  const rejected = whyFailing(draft, update);
  if (rejected !== undefined) progress(draft, { rejected, share: 0 });
  const { stepAt = now } = update;
  const isBaked = update.share === 1 && areReady && update.paused === undefined && now >= stepAt + policy.bakeSeconds * 1_000;
  const surge = Math.max(target, surgeOf(policy, target));
  if (!isBaked || rejected !== undefined) return { surge, maxUnavailable: 0, replacing: 0 };
  progress(draft, { step: 1 });
  // No old replica stays in place of a new one that the switch did not wait for.
  return { surge, maxUnavailable: Math.max(policy.maxUnavailable, target - enough) };
}

/** Requests move in steps. The share follows the ready replicas, so neither version gets more than it can serve. */
function advanceCanary(draft: Draft, update: UpdateProgress, { policy, target, remaining }: StageFacts): RolloutLimits {
  const { now } = draft.world;
  const { version } = draft.service;
  const step = nextStep(draft, update, policy);
  const stepShare = shareOfStep(policy, step);
  const possible = Math.min(stepShare, readyOf(remaining, version) / target);
  // While a user holds the update, the share may fall with lost replicas, and rise again to what it was.
  const share = update.paused === undefined ? possible : Math.min(possible, update.paused.share);
  const isReached = share === stepShare;
  if (share !== update.share || step !== update.step) progress(draft, { share, step });
  if (isReached && (update.stepAt === undefined || step !== update.step)) {
    progress(draft, { stepAt: now });
    const message = `Version ${version} gets ${Math.round(stepShare * 100)} % of the requests.`;
    draft.event({ at: now, cause: 'canary-step', message });
  } else if (!isReached && update.stepAt !== undefined) {
    progress(draft, { stepAt: undefined });
  }
  const { canaryEvidence } = draft.world;
  if (canaryEvidence !== undefined) progress(draft, { evidence: canaryEvidence });
  const rejected = whyRejected(draft, update);
  if (rejected !== undefined) progress(draft, { rejected, share: 0, evidence: undefined });
  // The share of the last step is reached in floating-point numbers.
  const replacing = Math.floor(share * target + 1e-9);
  return {
    surge: Math.max(1, surgeOf(policy, target)),
    // At least one replica of the old version serves its share.
    maxUnavailable: Math.max(0, Math.min(policy.maxUnavailable, target - replacing - 1)),
    replacing,
    most: update.paused?.replicas ?? Math.max(1, Math.ceil(target * stepShare - 1e-9)),
  };
}

/** The step of a canary now: the next one when this one has lasted long enough at its full share. */
function nextStep({ world: { now } }: Draft, { step = 0, stepAt, share, paused }: UpdateProgress, policy: UpdatePolicy): number {
  const isDone = stepAt !== undefined && share === shareOfStep(policy, step) && now >= stepAt + policy.bakeSeconds * 1_000;
  return isDone && paused === undefined && step < policy.steps.length ? step + 1 : step;
}

/** After the last step, a canary gets all requests. */
const shareOfStep = ({ steps }: UpdatePolicy, step: number): number => (steps[step] ?? 100) / 100;

/** Why the new version is worse than the old one; undefined while it is not known to be. */
function whyRejected(draft: Draft, update: UpdateProgress): string | undefined {
  return whyFailing(draft, update) ?? draft.world.canaryFault;
}

/** Whether replicas of the new version fail after they were ready, more often than the others. */
function whyFailing(draft: Draft, { at }: UpdateProgress): string | undefined {
  const { version } = draft.service;
  const failures = draft.memory.failures.filter((failure) => failure.at >= at && failure.everReady && !failure.killed);
  const own = failures.filter((failure) => failure.version === version).length;
  if (own >= failuresToReject && own > failures.length - own) return `${own} of its replicas failed after they had been ready.`;
  return undefined;
}

/** After an update stopped, the new version gets no more requests. */
export function withdrawShare(draft: Draft): void {
  const { share } = draft.memory.update ?? {};
  if (share !== undefined && share !== 0) progress(draft, { share: 0 });
}

/** The same update from its beginning, at a user's request. */
export function restartedUpdate({ from, mode }: UpdateProgress, now: number): UpdateProgress {
  return { from, at: now, ...(mode !== undefined && { mode }) };
}

/** An update that a user holds from now on. */
export function pausedUpdate(
  update: UpdateProgress,
  { version }: Pick<ServiceRecord, 'version'>,
  replicas: readonly ReplicaRecord[],
  now: number,
): UpdateProgress {
  const living = replicas.filter((replica) => replica.version === version && isAlive(replica.state)).length;
  return { ...update, paused: { at: now, replicas: living, share: update.share ?? 0 } };
}

/** An update that a user lets go on. The time on hold does not count for its step. */
export function resumedUpdate({ paused, stepAt, ...update }: UpdateProgress, now: number): UpdateProgress {
  if (stepAt === undefined || paused === undefined) return update;
  return { ...update, stepAt: stepAt + Math.max(0, now - Math.max(paused.at, stepAt)) };
}

function progress(draft: Draft, change: Partial<UpdateProgress>): void {
  const { memory } = draft;
  if (memory.update !== undefined) draft.patch({ memory: { ...memory, update: { ...memory.update, ...change } } });
}

/** Number of ready replicas of a version. */
export function readyOf(replicas: readonly Pick<ReplicaRecord, 'version' | 'state'>[], version: number): number {
  return replicas.filter((replica) => replica.version === version && replica.state === 'READY').length;
}
