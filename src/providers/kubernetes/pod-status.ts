import { mainContainer } from '../../domain/kubernetes/pod-config.ts';
import { isSilenceWidespread } from '../../domain/replica/silent-machines.ts';
import type { KubeObject } from '../../kubernetes/kube-api.ts';
import { isDefiniteAnswer, podTrouble, troubleText, type PodTrouble } from '../../kubernetes/pod-trouble.ts';
import { hasEnded, type ContainerEnd, type Pod } from '../../kubernetes/pod.ts';
import { asSentence } from '../../shared/text.ts';
import type { MachineSilence, MachineStatus } from '../provider.ts';
import { isDeletionIdle, type NodeTrouble } from './nodes/node-health.ts';

/** The fields of an event that svc reads. */
export interface PodEvent extends KubeObject {
  readonly reason?: string;
  readonly message?: string;
  readonly type?: string;
  readonly count?: number;
  /** Replaces `count` in events of the newer API. */
  readonly series?: { readonly count?: number };
  readonly involvedObject?: { readonly kind?: string; readonly name?: string; readonly uid?: string };
  readonly lastTimestamp?: string;
  readonly eventTime?: string;
}

/** What svc knows about one pod of a machine. */
export interface PodSight {
  readonly name: string;
  readonly pod: Pod | undefined;
  /** Oldest first; empty when not needed or unknown. */
  readonly events: readonly PodEvent[];
  /** Undefined while its node reports ready. */
  readonly trouble: NodeTrouble | undefined;
  /** The user may not read nodes. Then only the pod shows its node's state. */
  readonly areNodesHidden: boolean;
  /** See `areMostNodesCutOff`. */
  readonly areMostCutOff?: boolean;
}

type Gone = Extract<MachineStatus, { readonly state: 'gone' }>;

/** A machine is gone as soon as one of its pods is, and running when all of them are. */
export function machineStatus(pods: readonly PodSight[]): MachineStatus {
  const statuses = pods.map((sight) => podStatus(sight));
  const worst = statuses.find(({ state }) => state === 'gone') ?? statuses.find(({ state }) => state === 'booting') ?? statuses[0];
  if (worst === undefined) return { state: 'gone', reason: 'unknown' };
  const silence = commonSilence(statuses.flatMap((status) => ('silence' in status ? [status.silence] : [])));
  return silence !== undefined && (worst.state === 'running' || worst.state === 'booting') ? { ...worst, silence } : worst;
}

function commonSilence(silences: readonly MachineSilence[]): MachineSilence | undefined {
  const [first] = silences;
  if (first === undefined) return undefined;
  const any = (is: (silence: MachineSilence) => boolean): boolean => silences.some(is);
  return {
    message: first.message,
    isTaken: any(({ isTaken }) => isTaken),
    isWidespread: any(({ isWidespread }) => isWidespread),
    isEnding: any(({ isEnding }) => isEnding),
  };
}

/** Whether a machine waits for room. */
export function isWaitingForRoom(pods: readonly PodSight[]): boolean {
  return machineStatus(pods).state === 'booting' && pods.some(({ pod }) => pod !== undefined && podTrouble(pod)?.kind === 'no-room');
}

/** The status of one pod. */
export function podStatus(sight: PodSight): MachineStatus {
  const { pod, events, trouble } = sight;
  if (pod === undefined) return explained('deleted', events, undefined);
  const status = pod.status ?? {};
  const main = status.containerStatuses?.find(({ name }) => name === mainContainer);
  if (hasEnded(pod)) return wasEnded(pod) ? explained('deleted', events, preemptionOf(pod) ?? disruptionOf(pod)) : ended(pod, events);
  const isDeleted = pod.metadata.deletionTimestamp !== undefined;
  const silence = silenceOf(sight, pod);
  if (isDeleted && silence?.isEnding !== true)
    return trouble?.kind === 'removed' ? lost(trouble.message) : explained('deleted', events, disruptionOf(pod));
  if (main?.state?.terminated !== undefined) return ended(pod, events);
  if (trouble?.kind === 'removed') return lost(trouble.message);
  const runs = (status.phase === 'Running' || status.phase === 'Unknown') && main?.state?.running !== undefined;
  if (silence === undefined) return runs ? { state: 'running' } : waiting(pod, events);
  return runs ? { state: 'running', silence } : { state: 'booting', message: silence.message, silence };
}

/** Why a pod's state is unknown now. Undefined where its node, or the Kubernetes cluster for the node, reports it. */
function silenceOf({ trouble, areNodesHidden, areMostCutOff = false }: PodSight, pod: Pod): MachineSilence | undefined {
  const isDeleted = pod.metadata.deletionTimestamp !== undefined;
  if (trouble?.kind === 'silent') {
    const { message, isTaken, isWidespread, isLasting } = trouble;
    // A deletion counts at once: only the node decides whether the pod is gone.
    if (isDeleted ? !isDeletionIdle(trouble) : !isLasting) return undefined;
    return { message, isTaken, isWidespread, isEnding: isDeleted };
  }
  const blank = { isTaken: false, isWidespread: areMostCutOff, isEnding: isDeleted };
  if (pod.status?.phase === 'Unknown') return { message: sentence('Its node does not say how it is', pod.status.message), ...blank };
  if (areNodesHidden && isCutOff(pod))
    return { message: 'Its node does not answer: the cluster has marked the pod as not ready.', ...blank };
  return undefined;
}

/** Whether the node stopped reporting: the pod is marked as not ready, although all of its containers are. */
function isCutOff({ status }: Pod): boolean {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status !== 'False' || ready.reason !== undefined) return false;
  const containers = status?.containerStatuses ?? [];
  return containers.length > 0 && containers.every((container) => container.ready === true);
}

/** Whether silence is widespread where nodes are hidden. Only nodes with pods of this home are known then. */
export function areMostNodesCutOff(pods: readonly Pod[]): boolean {
  const living = pods.filter((pod) => pod.spec?.nodeName !== undefined && !hasEnded(pod));
  const byNode = [...Map.groupBy(living, (pod) => pod.spec?.nodeName).values()];
  const silent = byNode.filter((group) => group.some((pod) => pod.status?.phase === 'Unknown' || isCutOff(pod)));
  return isSilenceWidespread(silent.length, byNode.length);
}

/** Whether events would explain more than the pod itself does. */
export function needsEvents(pod: Pod | undefined): boolean {
  if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return true;
  const main = pod.status?.containerStatuses?.find(({ name }) => name === mainContainer);
  const isScheduled = pod.status?.conditions?.some(({ type, status }) => type === 'PodScheduled' && status === 'True') ?? false;
  return isScheduled && pod.status?.phase === 'Pending' && main?.state?.running === undefined;
}

function lost(message: string): Gone {
  return { state: 'gone', reason: 'unknown', message, mayPass: true };
}

/** Reasons of reclaimed pods. */
const preemptedReasons = new Set([
  'Evicted',
  'Preempting',
  'Preempted',
  'NodeLost',
  'NodeShutdown',
  'Shutdown',
  'Terminated',
  'DeletionByTaintManager',
]);

/** The same for events. */
const preemptedEvents = new Set(['Preempted', 'Preempting', 'Evicted', 'TaintManagerEviction', 'NodeShutdown', 'DisruptionTarget']);

function explained(otherwise: Gone['reason'], events: readonly PodEvent[], disruption: Gone | undefined): Gone {
  if (disruption !== undefined) return disruption;
  const preemption = events.findLast(({ reason }) => reason !== undefined && preemptedEvents.has(reason));
  // A cancelled eviction has an event of the same reason.
  if (preemption === undefined || /^cancelling/i.test(preemption.message ?? '')) return { state: 'gone', reason: otherwise };
  return { state: 'gone', reason: 'preempted', message: sentence(preemption.reason ?? 'Taken', preemption.message) };
}

/** Kubernetes 1.26 and later name the cause of a pod's end in a condition. */
function disruptionOf(pod: Pod): Gone | undefined {
  const condition = pod.status?.conditions?.find(({ type, status }) => type === 'DisruptionTarget' && status === 'True');
  return condition === undefined
    ? undefined
    : { state: 'gone', reason: 'preempted', message: sentence(condition.reason ?? 'Disrupted', condition.message) };
}

function preemptionOf({ status: { reason, message } = {} }: Pod): Gone | undefined {
  return reason !== undefined && preemptedReasons.has(reason)
    ? { state: 'gone', reason: 'preempted', message: sentence(reason, message) }
    : undefined;
}

/**
 * Whether a pod ended because it was removed. Since Kubernetes 1.27 nodes report the containers' end before the pod is
 * deleted, so only the times tell: a pod that had ended before its removal ended by itself.
 */
function wasEnded({ metadata, status }: Pod): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = metadata;
  if (deletionTimestamp === undefined) return false;
  const finishedAt = status?.containerStatuses?.find(({ name }) => name === mainContainer)?.state?.terminated?.finishedAt;
  if (finishedAt === undefined) return true;
  return Date.parse(finishedAt) >= Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1_000;
}

const noRoom = { kind: 'capacity', scope: 'zone' } as const;

function ended(pod: Pod, events: readonly PodEvent[]): Gone {
  const { reason, message, containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  const preemption = preemptionOf(pod) ?? disruptionOf(pod);
  if (preemption !== undefined) return preemption;
  const failed = [...initContainerStatuses, ...containerStatuses].flatMap(({ name, state }) =>
    state?.terminated === undefined ? [] : [{ name, end: state.terminated }],
  );
  const worst =
    failed.find(({ name, end }) => name === mainContainer && end.reason !== 'Completed') ??
    failed.find(({ end }) => end.exitCode !== 0) ??
    failed.find(({ name }) => name === mainContainer);
  if (worst !== undefined && reason === undefined)
    return { state: 'gone', reason: 'unknown', message: endText(worst.name, worst.end, pod) };
  // No container was started: the node rejected the pod, for example because the scheduler assumed more room.
  const wasRefused = initContainerStatuses.length + containerStatuses.length === 0;
  if (reason !== undefined)
    return { state: 'gone', reason: 'unknown', message: sentence(reason, message), ...(wasRefused && { mayPass: true, refusal: noRoom }) };
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

/** A pod ends after so many failed image pulls; Kubernetes waits 10 s, 20 s, 40 s in between. */
const pullTries = 3;

/** Warnings about a node's setup that keep no pod from starting. */
const idleWarnings = new Set(['MissingClusterDNS', 'DNSConfigForming']);

function waiting(pod: Pod, events: readonly PodEvent[]): MachineStatus {
  const trouble = podTrouble(pod);
  const warning = events.findLast(({ type, reason }) => type === 'Warning' && !idleWarnings.has(reason ?? ''));
  if (trouble === undefined) return warning === undefined ? { state: 'booting' } : booting(warning.reason ?? 'Warning', warning.message);
  if (trouble.kind === 'image') return pulling(trouble, events);
  const { container } = trouble;
  const lastEnd = container?.lastState?.terminated;
  // The node's message may say more than the pod's.
  const besides = container === undefined ? undefined : (lastEnd?.message ?? warning?.message);
  const message = sentence(troubleText(trouble, trouble.message ?? besides));
  // A container that has ended is restarted, or the pod has ended. A container that waits for its restart has ended
  // several times.
  const isCrashing = trouble.kind === 'crash' && container?.state?.waiting !== undefined;
  if (trouble.kind !== 'setup' && !isCrashing) return { state: 'booting', message };
  const crash = container === undefined || lastEnd === undefined ? undefined : endText(container.name, lastEnd, pod);
  return { state: 'gone', reason: 'unknown', message: crash ?? message, isHopeless: true };
}

function booting(reason: string, message: string | undefined): MachineStatus {
  return { state: 'booting', message: sentence(reason, message) };
}

function pulling(trouble: PodTrouble, events: readonly PodEvent[]): MachineStatus {
  const failures = events.filter(
    (event) => event.reason === 'Failed' && /pull/i.test(event.message ?? '') && event.message?.startsWith('Error: ') !== true,
  );
  const tries = failures.reduce((sum, { count, series }) => sum + Math.max(1, count ?? 0, series?.count ?? 0), 0);
  // Before Kubernetes 1.32 "Back-off pulling image" names no cause; the event does.
  const why = failures.at(-1)?.message ?? trouble.message;
  const message = sentence(troubleText(trouble, why));
  const detail = { message, detail: sentence(trouble.reason, why) };
  if (tries < pullTries) return { state: 'booting', ...detail };
  return { state: 'gone', reason: 'unknown', ...detail, isHopeless: isDefiniteAnswer(why) };
}

function sentence(reason: string, message?: string): string {
  const said = message?.trim().replaceAll(/\s+/g, ' ') ?? '';
  return asSentence(said === '' ? reason : `${reason}: ${said}`);
}
