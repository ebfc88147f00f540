import type { Draft } from './decision.ts';
import type { ReplicaRecord } from './records.ts';
import type { ReplicaEnd } from './replica/replica-report.ts';
import { needsReplacement, type SilentReplica } from './replica/silent-machines.ts';
import type { ReplicaPolicy } from './task.ts';

/**
 * How long the probes of a replica that was ready fail before another one is launched in its place, ms. With the default
 * interval of 10 s between probes, the launch is requested within 30 s of the loss, with time for a pass.
 */
const earlyAfterMs = 18_000;

/**
 * How long all requests at a replica fail before another one is launched in its place, ms. The balancer has ejected it
 * meanwhile: this includes the first trials after ejections of 10 and 20 s.
 */
export const brokenAfterMs = 60_000;

/** A replica that is replaced first and ends later. */
interface UnansweringReplica extends SilentReplica {
  readonly end: ReplicaEnd;
  /**
   * Set where its machine reports: since when it fails, and from when another replica may be launched in its place, both
   * in ms since the epoch, and a sentence about it without its end.
   */
  readonly failure?: { readonly since: number; readonly replacedFrom: number; readonly text: string };
}

/**
 * The replicas that do not count, because others are launched in their place. Each ends when enough others are ready, or
 * when its own grace is over. Those with a silent machine come first.
 */
export function unansweringReplicas(draft: Draft, policy: ReplicaPolicy): readonly UnansweringReplica[] {
  const silent = silentReplicas(draft);
  if (policy.earlyReplacement === false) return silent;
  return [...silent, ...earlyReplaced(draft, policy, new Set(silent.map(({ id }) => id))), ...brokenReplica(draft)];
}

function silentReplicas(draft: Draft): readonly UnansweringReplica[] {
  return draft.living.flatMap(({ id, state }): readonly UnansweringReplica[] => {
    const { machine, ...report } = draft.report(id);
    if (machine.type !== 'silent' && machine.type !== 'back') return [];
    const { isEnding, isWidespread } = machine;
    const answers = state === 'READY' && report.answers;
    const respondingForMs = machine.type === 'back' ? draft.world.monotonic - machine.since : undefined;
    // A replica that answers may have requests to finish, so it drains as an interrupted one.
    const end = { cause: answers ? 'interruption' : machine.cause, reason: machine.reason, killed: true } as const;
    const replica = { id, state, answers, isEnding, isWidespread, respondingForMs, end };
    return needsReplacement(replica) ? [replica] : [];
  });
}

/**
 * Replicas that were ready and whose probes keep failing, those that fail for the longest time first. When no replica is
 * ready, the prober's network or a busy machine is the likelier fault: then one at a time.
 */
function earlyReplaced(draft: Draft, policy: ReplicaPolicy, silent: ReadonlySet<number>): readonly UnansweringReplica[] {
  const { now } = draft.world;
  const isAnyReady = draft.living.some(({ state }) => state === 'READY');
  // An engine that wakes up fails its probes for as long as it loads its memory.
  if (!isAnyReady && policy.scaleToZero === 'sleep') return [];
  const failing = draft.living.flatMap(({ id, state, firstProbeFailureAt: since }): readonly UnansweringReplica[] => {
    const isReplaced = silent.has(id) || draft.report(id).notice !== undefined;
    if (isReplaced || state !== 'NOT_READY' || since === null || now - since < earlyAfterMs) return [];
    const text = `The probes of replica ${id} have failed for ${Math.round((now - since) / 1_000)} s`;
    const end = { cause: 'probing', reason: `${text}, and another replica serves in its place.` } as const;
    // Its machine may be silent as long as its provider has not described it: then it keeps its replacement, but stays.
    const machine = { isEnding: false, isWidespread: draft.report(id).machine.type === 'unseen', respondingForMs: undefined };
    return [{ id, state, answers: false, ...machine, end, failure: { since, replacedFrom: since + earlyAfterMs, text } }];
  });
  return failing.toSorted((a, b) => sinceOf(a) - sinceOf(b) || a.id - b.id).slice(0, isAnyReady ? failing.length : 1);
}

/**
 * The replica that passes its probes but has given requests no complete response for `brokenAfterMs`, unless all ready ones
 * are so. Requests that fail everywhere are the fault of the program or of a client. One at a time is replaced.
 */
function brokenReplica(draft: Draft): readonly UnansweringReplica[] {
  const { now, broken = {} } = draft.world;
  const ready = draft.living.filter(({ id, state }) => state === 'READY' && draft.report(id).notice === undefined);
  if (ready.every(({ id }) => broken[id] !== undefined)) return [];
  const found = ready.flatMap(({ id, state }): readonly UnansweringReplica[] => {
    const { hung = 0, cutOff = 0, seconds = 0, ageSeconds = 0 } = broken[id] ?? {};
    if (seconds * 1_000 < brokenAfterMs || draft.report(id).machine.type !== 'reporting') return [];
    const text = `Replica ${id} passes its probes, but its last ${hung + cutOff} requests failed for ${seconds} s (${hung} hung, ${cutOff} broke off)`;
    const end = { cause: 'probing', reason: `${text}, and another replica serves in its place.` } as const;
    const machine = { isEnding: false, isWidespread: false, respondingForMs: undefined };
    const since = now - ageSeconds * 1_000;
    return [{ id, state, answers: false, ...machine, end, failure: { since, replacedFrom: since + brokenAfterMs, text } }];
  });
  return found.toSorted((a, b) => sinceOf(a) - sinceOf(b) || a.id - b.id).slice(0, 1);
}

const sinceOf = ({ failure }: UnansweringReplica): number => failure?.since ?? 0;

/** Sentences about the failing replicas in whose place no replica of `counted` was launched, for the next launches. */
export function withoutReplacement(unanswering: readonly UnansweringReplica[], counted: readonly ReplicaRecord[]): readonly string[] {
  const launched = counted.map(({ createdAt }) => createdAt);
  return unanswering.flatMap(({ failure }) => {
    if (failure === undefined) return [];
    const index = launched.findIndex((at) => at >= failure.replacedFrom);
    if (index < 0) return [failure.text];
    launched.splice(index, 1);
    return [];
  });
}
