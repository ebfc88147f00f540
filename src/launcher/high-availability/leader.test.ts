import { expect, test } from 'vitest';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { policyVersionOf } from './cluster-facts.ts';
import type { Pod } from '../../kubernetes/pod.ts';
import { isReady, troubleOf } from './leader.ts';
import { isRolledOut, TroubleWatch } from './rollout.ts';

const metadata = { name: 'svc-controller-1', uid: 'u', resourceVersion: '1' } as const;
const waiting = (reason: string, message = '', restartCount = 0): Pod => ({
  metadata,
  status: { containerStatuses: [{ name: 'controller', restartCount, state: { waiting: { reason, message } } }] },
});

/** What a cluster says of the versions that it has. */
const groups = (...versions: readonly string[]) => ({
  groups: [{ name: 'policy', versions: versions.map((version) => ({ groupVersion: `policy/${version}`, version })) }],
});

test('a pod that is coming up has no trouble, and one that never will says so in the words of the cluster', () => {
  expect(troubleOf(waiting('ContainerCreating'))).toBeUndefined();
  expect(troubleOf(waiting('ErrImageNeverPull', 'the image is not there'))).toEqual({
    kind: 'setup',
    text: 'ErrImageNeverPull: the image is not there',
    isLasting: true,
  });
  expect(troubleOf(waiting('ImagePullBackOff'))?.isLasting).toBe(false);
  expect([1, 5].map((restarts) => troubleOf(waiting('CrashLoopBackOff', '', restarts))?.isLasting)).toEqual([false, true]);
  const pending = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes are available' };
  expect(troubleOf({ metadata, status: { conditions: [pending] } })?.text).toBe('Unschedulable: 0/3 nodes are available');
});

test('an image that cannot be fetched says so shortly, and is the same trouble whether it is being tried or waited for', async () => {
  const api = new FakeKubeApi();
  const clock = new FakeClock();
  const pods = '/api/v1/namespaces/serving/pods';
  const put = (reason: string, message: string) =>
    api.put(`${pods}/svc-controller-1`, {
      metadata: { ...metadata, labels: { 'svc-role': 'controller' } },
      spec: { containers: [{ name: 'controller', image: 'registry.test/svc:1' }] },
      status: waiting(reason, message).status,
    });
  const watch = new TroubleWatch(
    { context: 'prod', namespace: 'serving' },
    { api, clock, signal: new AbortController().signal, onStep: () => undefined },
  );
  put('ErrImagePull', 'failed to pull and unpack image "registry.test/svc:1": registry.test/svc:1: not found');
  expect(await watch.look()).toContain('Pod svc-controller-1: The image registry.test/svc:1 cannot be pulled: not found');
  await clock.advance(40_000);
  put('ImagePullBackOff', 'Back-off pulling image "registry.test/svc:1"');
  await watch.look();
  await clock.advance(40_000);
  await expect(watch.look()).rejects.toMatchObject({ code: 'SVC_CONTROLLER_START' });
});

test('a pod on its way out is not ready', () => {
  const status = { conditions: [{ type: 'Ready', status: 'True' }] };
  expect(isReady({ metadata, status })).toBe(true);
  expect(isReady({ metadata: { ...metadata, deletionTimestamp: 'now' }, status })).toBe(false);
});

test('pods are rolled out when all are of the last description, and work', () => {
  const wanted = { metadata: { ...metadata, generation: 2 }, spec: { replicas: 2 } };
  const done = { observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2 };
  expect(isRolledOut({ ...wanted, status: done })).toBe(true);
  for (const change of [{ observedGeneration: 1 }, { replicas: 3 }, { updatedReplicas: 1 }, { readyReplicas: 1 }])
    expect(isRolledOut({ ...wanted, status: { ...done, ...change } })).toBe(false);
});

test('the stable version of budgets is used where the cluster has it', () => {
  expect(policyVersionOf(groups('v1beta1'))).toBe('policy/v1beta1');
  expect(policyVersionOf(groups('v1', 'v1beta1'))).toBe('policy/v1');
  expect(policyVersionOf(undefined)).toBe('policy/v1');
});

test('what a pod waits for may pass; what it says for a minute does not, and is told with its last words', async () => {
  const api = new FakeKubeApi();
  const clock = new FakeClock();
  const pods = '/api/v1/namespaces/serving/pods';
  api.put(`${pods}/svc-controller-1`, {
    metadata: { ...metadata, labels: { 'svc-role': 'controller' } },
    status: waiting('CrashLoopBackOff', 'back-off', 1).status,
  });
  api.texts.set(`${pods}/svc-controller-1/log`, 'the database refuses\n');
  const watch = new TroubleWatch(
    { context: 'prod', namespace: 'serving' },
    { api, clock, signal: new AbortController().signal, onStep: () => undefined },
  );
  expect(await watch.look()).toContain('CrashLoopBackOff: back-off');
  await clock.advance(61_000);
  await expect(watch.look()).rejects.toMatchObject({
    code: 'SVC_CONTROLLER_START',
    message: expect.stringContaining('it said: the database refuses'),
  });
});
