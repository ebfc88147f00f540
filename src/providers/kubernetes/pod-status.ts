import { mainContainer } from '../../domain/pod-config.ts';
import { isDefiniteAnswer } from '../../kubernetes/image-pull.ts';
import { podTrouble, troubleText, type PodTrouble } from '../../kubernetes/pod-trouble.ts';
import { asSentence } from '../../shared/sentence.ts';
import type { MachineStatus } from '../provider.ts';
import { hasEnded, type ContainerEnd, type Pod } from '../../kubernetes/pod.ts';
import type { ClusterEvent } from './objects.ts';

/** What is known of one pod of a machine. */
export interface PodSight {
  readonly name: string;
  /** Undefined when there is none. */
  readonly pod: Pod | undefined;
  /** What its cluster told of it, the oldest first; empty where that is not needed or not known. */
  readonly events: readonly ClusterEvent[];
  /** Why the node it is on counts as lost, a sentence; undefined while that is up. */
  readonly lostNode: { readonly message: string; readonly isTaken: boolean } | undefined;
  /** Whether nobody may look at nodes, so that only the pod itself can tell of its own. */
  readonly areNodesHidden: boolean;
}

type Gone = Extract<MachineStatus, { readonly state: 'gone' }>;

/** How a machine is, which is gone with the first of its pods that is and runs when all of them do. */
export function machineStatus(pods: readonly PodSight[]): MachineStatus {
  const statuses = pods.map((sight) => podStatus(sight));
  return (
    statuses.find(({ state }) => state === 'gone') ??
    statuses.find(({ state }) => state === 'booting') ??
    statuses[0] ?? { state: 'gone', reason: 'unknown' }
  );
}

/** Whether a machine waits until there is room for it. */
export function isWaitingForRoom(pods: readonly PodSight[]): boolean {
  return machineStatus(pods).state === 'booting' && pods.some(({ pod }) => pod !== undefined && podTrouble(pod)?.kind === 'no-room');
}

/** How one pod is. */
export function podStatus(sight: PodSight): MachineStatus {
  const { pod, events, lostNode } = sight;
  if (pod === undefined) return explained('deleted', events, undefined);
  const status = pod.status ?? {};
  const main = status.containerStatuses?.find(({ name }) => name === mainContainer);
  if (hasEnded(pod)) return wasEnded(pod) ? explained('deleted', events, takenOf(pod) ?? disruptionOf(pod)) : ended(pod, events);
  if (pod.metadata.deletionTimestamp !== undefined) {
    if (lostNode !== undefined) return lost(lostNode);
    return explained('deleted', events, disruptionOf(pod));
  }
  if (main?.state?.terminated !== undefined) return ended(pod, events);
  if (lostNode !== undefined) return lost(lostNode);
  if (status.phase === 'Unknown') return lost({ message: sentence('Its node does not say how it is', status.message), isTaken: false });
  if (sight.areNodesHidden && isCutOff(pod))
    return lost({ message: 'Its node does not answer: the cluster has marked the pod as not ready.', isTaken: false });
  if (status.phase === 'Running' && main?.state?.running !== undefined) return { state: 'running' };
  return waiting(pod, events);
}

/**
 * Whether the cluster has given up hearing of a pod from its node: it marks the pod as not ready, although by what was heard last its containers are.
 */
function isCutOff({ status }: Pod): boolean {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status !== 'False' || ready.reason !== undefined) return false;
  const containers = status?.containerStatuses ?? [];
  return containers.length > 0 && containers.every((container) => container.ready === true);
}

/** Whether the cluster's events would say more of a pod than it says itself. */
export function wantsEvents(pod: Pod | undefined): boolean {
  if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return true;
  const main = pod.status?.containerStatuses?.find(({ name }) => name === mainContainer);
  const isScheduled = pod.status?.conditions?.some(({ type, status }) => type === 'PodScheduled' && status === 'True') ?? false;
  return isScheduled && pod.status?.phase === 'Pending' && main?.state?.running === undefined;
}

function lost({ message, isTaken }: NonNullable<PodSight['lostNode']>): Gone {
  return { state: 'gone', reason: isTaken ? 'preempted' : 'unknown', message, mayPass: true };
}

/** Reasons of a pod that say that its place took it. */
const takenReasons = new Set([
  'Evicted',
  'Preempting',
  'Preempted',
  'NodeLost',
  'NodeShutdown',
  'Shutdown',
  'Terminated',
  'DeletionByTaintManager',
]);

/** Reasons of events that tell the same. */
const takenEvents = new Set(['Preempted', 'Preempting', 'Evicted', 'TaintManagerEviction', 'NodeShutdown', 'DisruptionTarget']);

function explained(otherwise: Gone['reason'], events: readonly ClusterEvent[], disruption: Gone | undefined): Gone {
  if (disruption !== undefined) return disruption;
  const taken = events.findLast(({ reason }) => reason !== undefined && takenEvents.has(reason));
  // A cancelled eviction is told by an event of the same reason.
  if (taken === undefined || /^cancelling/i.test(taken.message ?? '')) return { state: 'gone', reason: otherwise };
  return { state: 'gone', reason: 'preempted', message: sentence(taken.reason ?? 'Taken', taken.message) };
}

/** From 1.26 on pods say themselves who ends them. */
function disruptionOf(pod: Pod): Gone | undefined {
  const told = pod.status?.conditions?.find(({ type, status }) => type === 'DisruptionTarget' && status === 'True');
  return told === undefined
    ? undefined
    : { state: 'gone', reason: 'preempted', message: sentence(told.reason ?? 'Disrupted', told.message) };
}

function takenOf({ status: { reason, message } = {} }: Pod): Gone | undefined {
  return reason !== undefined && takenReasons.has(reason)
    ? { state: 'gone', reason: 'preempted', message: sentence(reason, message) }
    : undefined;
}

/**
 * Whether a pod ended because somebody removed it: from 1.27 on nodes report how its containers ended before it is off the record, which says nothing of why.
 * What had ended before it was removed ended by itself.
 */
function wasEnded({ metadata, status }: Pod): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = metadata;
  if (deletionTimestamp === undefined) return false;
  const finishedAt = status?.containerStatuses?.find(({ name }) => name === mainContainer)?.state?.terminated?.finishedAt;
  if (finishedAt === undefined) return true;
  return Date.parse(finishedAt) >= Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1_000;
}

function ended(pod: Pod, events: readonly ClusterEvent[]): Gone {
  const { reason, message, containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  const taken = takenOf(pod) ?? disruptionOf(pod);
  if (taken !== undefined) return taken;
  const failed = [...initContainerStatuses, ...containerStatuses].flatMap(({ name, state }) =>
    state?.terminated === undefined ? [] : [{ name, end: state.terminated }],
  );
  const worst =
    failed.find(({ name, end }) => name === mainContainer && end.reason !== 'Completed') ??
    failed.find(({ end }) => end.exitCode !== 0) ??
    failed.find(({ name }) => name === mainContainer);
  if (worst !== undefined && reason === undefined)
    return { state: 'gone', reason: 'unknown', message: endText(worst.name, worst.end, pod) };
  // Nothing of it was ever begun: its node did not take it, as one that has less room than the scheduler thought.
  const wasRefused = initContainerStatuses.length + containerStatuses.length === 0;
  if (reason !== undefined)
    return { state: 'gone', reason: 'unknown', message: sentence(reason, message), ...(wasRefused && { mayPass: true }) };
  return explained('unknown', events, undefined);
}

function endText(name: string, { reason, exitCode, signal, message }: ContainerEnd, pod: Pod): string {
  const limit = pod.spec?.containers?.find((container) => container.name === name)?.resources?.limits?.['memory'];
  const details = [
    ...(exitCode === undefined ? [] : [`exit code ${exitCode}`]),
    ...(signal === undefined || signal === 0 ? [] : [`signal ${signal}`]),
    ...(reason === 'OOMKilled' && limit !== undefined ? [`memory limit ${limit}`] : []),
  ];
  const how = `${reason ?? 'ended'}${details.length === 0 ? '' : ` (${details.join(', ')})`}`;
  return sentence(`Its container ${name} ended: ${how}`, message);
}

/** How often fetching an image may fail; Kubernetes waits 10 s, 20 s, 40 s in between. */
const pullTries = 3;

/** Reasons of warnings about how a node is set up, which keep no pod from starting. */
const idleWarnings = new Set(['MissingClusterDNS', 'DNSConfigForming']);

function waiting(pod: Pod, events: readonly ClusterEvent[]): MachineStatus {
  const trouble = podTrouble(pod);
  const warning = events.findLast(({ type, reason }) => type === 'Warning' && !idleWarnings.has(reason ?? ''));
  if (trouble === undefined) return warning === undefined ? { state: 'booting' } : booting(warning.reason ?? 'Warning', warning.message);
  if (trouble.kind === 'image') return pulling(trouble, events);
  const { container } = trouble;
  const lastEnd = container?.lastState?.terminated;
  // Of the container its node may have said more than the pod does.
  const besides = container === undefined ? undefined : (lastEnd?.message ?? warning?.message);
  const message = sentence(troubleText(trouble, trouble.message ?? besides));
  // One that has ended is started again, or the pod has ended; one that waits for that has ended often.
  const isCrashing = trouble.kind === 'crash' && container?.state?.waiting !== undefined;
  if (trouble.kind !== 'setup' && !isCrashing) return { state: 'booting', message };
  const crash = container === undefined || lastEnd === undefined ? undefined : endText(container.name, lastEnd, pod);
  return { state: 'gone', reason: 'unknown', message: crash ?? message, isHopeless: true };
}

function booting(reason: string, message: string | undefined): MachineStatus {
  return { state: 'booting', message: sentence(reason, message) };
}

function pulling(trouble: PodTrouble, events: readonly ClusterEvent[]): MachineStatus {
  const failures = events.filter(
    (event) => event.reason === 'Failed' && /pull/i.test(event.message ?? '') && event.message?.startsWith('Error: ') !== true,
  );
  const tries = failures.reduce((sum, { count, series }) => sum + Math.max(1, count ?? 0, series?.count ?? 0), 0);
  // "Back-off pulling image" says nothing before 1.32; why it failed is in the event.
  const why = failures.at(-1)?.message ?? trouble.message;
  const message = sentence(troubleText(trouble, why));
  const detail = { message, detail: sentence(trouble.reason, why) };
  if (tries < pullTries) return { state: 'booting', ...detail };
  return { state: 'gone', reason: 'unknown', ...detail, isHopeless: isDefiniteAnswer(why) };
}

/** `Reason: what is said of it.` */
function sentence(reason: string, message?: string): string {
  const said = message?.trim().replaceAll(/\s+/g, ' ') ?? '';
  return asSentence(said === '' ? reason : `${reason}: ${said}`);
}
