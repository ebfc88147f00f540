import { expect, test } from 'vitest';
import type { ContainerStatus, Pod, PodStatus } from '../../kubernetes/pod.ts';
import { isWaitingForRoom, machineStatus, podStatus, needsEvents, type PodEvent, type PodSight } from './pod-status.ts';

const metadata = { name: 'p', uid: 'u', resourceVersion: '1' };
const scheduled = [{ type: 'PodScheduled', status: 'True' }];

function pod(status: PodStatus, more: Partial<Pod> = {}): Pod {
  return {
    metadata,
    spec: { nodeName: 'n1', containers: [{ name: 'main', image: 'a:1', resources: { limits: { memory: '64Mi' } } }] },
    status,
    ...more,
  };
}
const seen = (of: Pod | undefined, events: readonly PodEvent[] = [], trouble?: PodSight['trouble'], areNodesHidden = false) =>
  podStatus({ name: 'p', pod: of, events, trouble, areNodesHidden });
const main = (state: ContainerStatus['state'], more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name: 'main',
  ...(state && { state }),
  ...more,
});
const event = (reason: string, message: string, more: Partial<PodEvent> = {}): PodEvent => ({
  metadata,
  reason,
  message,
  type: 'Warning',
  ...more,
});
const waiting = (reason: string, message: string, events: readonly PodEvent[] = []) =>
  seen(pod({ phase: 'Pending', conditions: scheduled, containerStatuses: [main({ waiting: { reason, message } })] }), events);
const running = pod({ phase: 'Running', containerStatuses: [main({ running: {} })] });

test('a pod whose container runs is running', () => {
  expect(seen(running)).toEqual({ state: 'running' });
});

test("a pod that waits for room has the scheduler's message", () => {
  const unschedulable = {
    type: 'PodScheduled',
    status: 'False',
    reason: 'Unschedulable',
    message: '0/2 nodes are available: 2 Insufficient cpu.',
  };
  expect(seen(pod({ phase: 'Pending', conditions: [unschedulable] }))).toEqual({
    state: 'booting',
    message: 'Unschedulable: 0/2 nodes are available: 2 Insufficient cpu.',
  });
});

test("a pod whose container is being created has its node's warning as message", () => {
  expect(waiting('ContainerCreating', '')).toEqual({ state: 'booting' });
  const mount = event('FailedMount', 'MountVolume.SetUp failed for volume "x"');
  expect(waiting('ContainerCreating', '', [mount])).toEqual({
    state: 'booting',
    message: 'FailedMount: MountVolume.SetUp failed for volume "x".',
  });
  const dns = event('MissingClusterDNS', 'kubelet does not have ClusterDNS IP configured');
  expect(waiting('ContainerCreating', '', [dns])).toEqual({ state: 'booting' });
  expect(waiting('ContainerCreating', '', [mount, dns])).toMatchObject({ message: expect.stringContaining('FailedMount') });
});

test('three failed image pulls end the pod, hopelessly if the registry answered', () => {
  const notFound = event('Failed', 'Failed to pull image "a:1": rpc error: code = NotFound desc = a:1: not found');
  const backOff = 'Back-off pulling image "a:1"';
  expect(waiting('ImagePullBackOff', backOff, [{ ...notFound, count: 2 }])).toMatchObject({ state: 'booting' });
  expect(waiting('ImagePullBackOff', backOff, [{ ...notFound, count: 3 }])).toEqual({
    state: 'gone',
    reason: 'unknown',
    message: 'The image a:1 cannot be pulled: not found.',
    detail: 'ImagePullBackOff: Failed to pull image "a:1": rpc error: code = NotFound desc = a:1: not found.',
    isHopeless: true,
  });
  const silent = event('Failed', 'Failed to pull image "a:1": dial tcp: i/o timeout', { count: 2 });
  const errors = event('Failed', 'Error: ErrImagePull', { count: 9 });
  expect(waiting('ErrImagePull', 'dial tcp: i/o timeout', [silent, errors])).toMatchObject({ state: 'booting' });
  expect(waiting('ErrImagePull', 'x', [{ ...silent, count: 3 }])).toMatchObject({ state: 'gone', isHopeless: false });
});

test('a retried image pull shows a short cause, also without events', () => {
  const backOffMessage =
    'Back-off pulling image "a:1": ErrImagePull: failed to resolve image: dial tcp 10.0.0.9:443: connect: connection refused';
  expect(waiting('ImagePullBackOff', backOffMessage)).toEqual({
    state: 'booting',
    message: 'The image a:1 cannot be pulled: connection refused.',
    detail: `ImagePullBackOff: ${backOffMessage}.`,
  });
  expect(waiting('ImagePullBackOff', 'Back-off pulling image "a:1"')).toMatchObject({
    message: 'The image a:1 cannot be pulled: ImagePullBackOff.',
  });
  const counted = event('Failed', 'Failed to pull image "a:1": a:1: not found', { series: { count: 3 } });
  expect(waiting('ImagePullBackOff', backOffMessage, [counted])).toMatchObject({ state: 'gone', isHopeless: true });
});

test.each(['InvalidImageName', 'ErrImageNeverPull', 'CreateContainerConfigError'])('%s is hopeless', (reason) => {
  expect(waiting(reason, 'secret "a" not found')).toEqual({
    state: 'gone',
    reason: 'unknown',
    message: `${reason}: secret "a" not found.`,
    isHopeless: true,
  });
});

test('a container in CrashLoopBackOff reports how it ended', () => {
  const crashing = main(
    { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s restarting failed container' } },
    { lastState: { terminated: { exitCode: 3, reason: 'Error', message: 'no licence' } } },
  );
  expect(seen(pod({ phase: 'Running', conditions: scheduled, containerStatuses: [crashing] }))).toMatchObject({
    state: 'gone',
    message: 'Its container main ended: Error (exit code 3): no licence.',
  });
});

test('one failure of a sidecar is no crash', () => {
  const side: ContainerStatus = { name: 'side', state: { terminated: { exitCode: 1, reason: 'Error' } } };
  const of = pod({ phase: 'Pending', conditions: scheduled, initContainerStatuses: [side], containerStatuses: [] });
  expect(seen(of)).toEqual({ state: 'booting', message: 'Error (exit code 1).' });
});

test('an OOMKilled container is reported with its memory limit', () => {
  const ended = main({ terminated: { exitCode: 137, reason: 'OOMKilled' } });
  expect(seen(pod({ phase: 'Failed', containerStatuses: [ended] }))).toEqual({
    state: 'gone',
    reason: 'unknown',
    message: 'Its container main ended: OOMKilled (exit code 137, memory limit 64Mi).',
  });
});

test('a pod ends with its main container, although a sidecar still runs', () => {
  const side: ContainerStatus = { name: 'side', state: { running: {} } };
  expect(
    seen(pod({ phase: 'Running', containerStatuses: [side, main({ terminated: { exitCode: 0, reason: 'Completed' } })] })),
  ).toMatchObject({
    state: 'gone',
    message: 'Its container main ended: Completed (exit code 0).',
  });
});

test('an evicted or shut-down pod is preempted; a rejected pod lacks capacity', () => {
  expect(seen(pod({ phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory. ' }))).toEqual({
    state: 'gone',
    reason: 'preempted',
    message: 'Evicted: The node was low on resource: memory.',
  });
  expect(seen(pod({ phase: 'Failed', reason: 'NodeShutdown', message: 'Node is shutting, evicting pods' }))).toMatchObject({
    reason: 'preempted',
  });
  expect(seen(pod({ phase: 'Failed', reason: 'OutOfcpu', message: 'Node has not enough' }))).toEqual({
    state: 'gone',
    reason: 'unknown',
    message: 'OutOfcpu: Node has not enough.',
    mayPass: true,
    refusal: { kind: 'capacity', scope: 'zone' },
  });
});

test('an event or a condition shows that the scheduler preempted a pod', () => {
  const going = { ...running, metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
  const preempted = event('Preempted', 'Preempted by default/big on node n1');
  expect(seen(going, [preempted])).toEqual({
    state: 'gone',
    reason: 'preempted',
    message: 'Preempted: Preempted by default/big on node n1.',
  });
  expect(seen(undefined, [preempted])).toMatchObject({ reason: 'preempted' });
  const condition = { type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI', message: 'Eviction API: evicting' };
  expect(seen({ ...going, status: { ...going.status, conditions: [condition] } })).toEqual({
    state: 'gone',
    reason: 'preempted',
    message: 'EvictionByEvictionAPI: Eviction API: evicting.',
  });
  expect(seen(going, [event('TaintManagerEviction', 'Cancelling deletion of Pod default/p')])).toEqual({
    state: 'gone',
    reason: 'deleted',
  });
});

test('a deleted pod is gone at once', () => {
  expect(seen({ ...running, metadata: { ...metadata, deletionTimestamp: 'now' } })).toEqual({ state: 'gone', reason: 'deleted' });
  expect(seen(undefined)).toEqual({ state: 'gone', reason: 'deleted' });
});

/** Its main container ended then; the removal was requested at half past. */
const ended = (finishedAt: string, status: PodStatus = {}) =>
  pod(
    { phase: 'Failed', containerStatuses: [main({ terminated: { exitCode: 143, reason: 'Error', finishedAt } })], ...status },
    { metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:01:00Z', deletionGracePeriodSeconds: 30 } },
  );

test('a pod that ends after its deletion was requested is deleted, not failed', () => {
  expect(seen(ended('2026-01-01T00:00:31Z'))).toEqual({ state: 'gone', reason: 'deleted' });
  expect(seen(ended('2026-01-01T00:00:29Z'))).toMatchObject({ reason: 'unknown', message: expect.stringContaining('exit code 143') });
  const disrupted = { conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }] };
  expect(seen(ended('2026-01-01T00:00:31Z', disrupted))).toMatchObject({ reason: 'preempted' });
  expect(seen(ended('2026-01-01T00:00:31Z', { reason: 'Terminated' }))).toMatchObject({ reason: 'preempted' });
});

test('a machine waits for room when one pod is unschedulable or gated', () => {
  const unscheduled = (reason: string) => pod({ phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason }] });
  const waits = (...pods: readonly Pod[]) => isWaitingForRoom(pods.map((one) => at('p', one)));
  expect(waits(running, unscheduled('Unschedulable'))).toBe(true);
  expect(waits(unscheduled('SchedulingGated'))).toBe(true);
  expect(waits(pod({ phase: 'Pending', conditions: scheduled }))).toBe(false);
  expect(isWaitingForRoom([at('a', unscheduled('Unschedulable')), at('b', undefined)])).toBe(false);
});

const silentNode = {
  kind: 'silent',
  message: 'The node n1 is not ready (NodeStatusUnknown: Kubelet stopped posting node status).',
  isTaken: false,
  hasNoHeartbeat: true,
  isLasting: true,
  isWidespread: false,
} as const;

const deleted = (of: Pod): Pod => ({ ...of, metadata: { ...of.metadata, deletionTimestamp: '2026-01-01T00:00:30Z' } });

test('a pod whose node was removed is gone, whatever its last report', () => {
  const message = 'The node n1 is no longer in the cluster.';
  const gone = { state: 'gone', reason: 'unknown', message, mayPass: true };
  expect(seen(running, [], { kind: 'removed', message })).toEqual(gone);
  expect(seen(deleted(running), [], { kind: 'removed', message })).toEqual(gone);
});

test('a pod of a lastingly silent node counts as running, with its silence', () => {
  const { message } = silentNode;
  const silence = { message, isTaken: false, isWidespread: false, isEnding: false };
  expect(seen(running, [], silentNode)).toEqual({ state: 'running', silence });
  expect(seen(running, [], { ...silentNode, isTaken: true, isWidespread: true })).toMatchObject({
    silence: { isTaken: true, isWidespread: true },
  });
  expect(seen(running, [], { ...silentNode, isLasting: false })).toEqual({ state: 'running' });
  expect(seen(pod({ phase: 'Pending', conditions: scheduled }), [], silentNode)).toEqual({ state: 'booting', message, silence });
});

test('a deleted pod of a silent kubelet still runs; otherwise it is gone', () => {
  expect(seen(deleted(running), [], silentNode)).toMatchObject({ state: 'running', silence: { isEnding: true } });
  expect(seen(deleted(running), [], { ...silentNode, isLasting: false })).toMatchObject({ silence: { isEnding: true } });
  expect(seen(deleted(running), [], { ...silentNode, hasNoHeartbeat: false })).toEqual({ state: 'gone', reason: 'deleted' });
});

test('with hidden nodes, a ready pod marked not ready is on a silent node', () => {
  const cut = pod({
    phase: 'Running',
    conditions: [{ type: 'Ready', status: 'False' }],
    containerStatuses: [main({ running: {} }, { ready: true })],
  });
  expect(seen(cut, [], undefined, true)).toMatchObject({ state: 'running', silence: { isEnding: false } });
  expect(seen(deleted(cut), [], undefined, true)).toMatchObject({ state: 'running', silence: { isEnding: true } });
  expect(seen(cut)).toEqual({ state: 'running' });
  const probing = pod({
    phase: 'Running',
    conditions: [{ type: 'Ready', status: 'False', reason: 'ContainersNotReady' }],
    containerStatuses: [main({ running: {} }, { ready: false })],
  });
  expect(seen(probing, [], undefined, true)).toEqual({ state: 'running' });
});

const at = (name: string, of: Pod | undefined): PodSight => ({ name, pod: of, events: [], trouble: undefined, areNodesHidden: false });

test('a group runs when all pods run, and is gone with the first', () => {
  const pending = pod({ phase: 'Pending', conditions: scheduled });
  expect(machineStatus([at('a', running), at('b', running)])).toEqual({ state: 'running' });
  expect(machineStatus([at('a', running), at('b', pending)])).toMatchObject({ state: 'booting' });
  expect(machineStatus([at('a', pending), at('b', undefined)])).toMatchObject({ state: 'gone' });
});

test('a group is silent with any pod, and gone with the first gone pod', () => {
  const silent = { ...at('b', running), trouble: silentNode };
  expect(machineStatus([at('a', running), silent])).toMatchObject({ state: 'running', silence: { isEnding: false } });
  expect(machineStatus([silent, { ...silent, pod: deleted(running) }])).toMatchObject({ state: 'running', silence: { isEnding: true } });
  expect(machineStatus([silent, at('c', undefined)])).toMatchObject({ state: 'gone' });
});

test('events are requested only where they may explain more', () => {
  expect(needsEvents(running)).toBe(false);
  expect(needsEvents(undefined)).toBe(true);
  expect(needsEvents(pod({ phase: 'Pending', conditions: scheduled }))).toBe(true);
  expect(needsEvents(pod({ phase: 'Pending', conditions: [] }))).toBe(false);
});
