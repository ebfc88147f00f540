import { expect, test } from 'vitest';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import type { Pod } from '../../kubernetes/pod.ts';
import { isReady, troubleOf } from './leader.ts';
import { isRolledOut, TroubleWatch } from './rollout.ts';

const metadata = { name: 'svc-controller-1', uid: 'u', resourceVersion: '1' } as const;
const waiting = (reason: string, message = '', restartCount = 0): Pod => ({
  metadata,
  status: { containerStatuses: [{ name: 'controller', restartCount, state: { waiting: { reason, message } } }] },
});

test("a starting pod has no problem; a failing one has Kubernetes' reason", () => {
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

test('ErrImagePull and ImagePullBackOff count as the same problem', async () => {
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
  expect(await watch.check()).toContain('Pod svc-controller-1: The image registry.test/svc:1 cannot be pulled: not found');
  await clock.advance(40_000);
  put('ImagePullBackOff', 'Back-off pulling image "registry.test/svc:1"');
  await watch.check();
  await clock.advance(40_000);
  await expect(watch.check()).rejects.toMatchObject({ code: 'SVC_CONTROLLER_START' });
});

test('a pod that is being deleted is not ready', () => {
  const status = { conditions: [{ type: 'Ready', status: 'True' }] };
  expect(isReady({ metadata, status })).toBe(true);
  expect(isReady({ metadata: { ...metadata, deletionTimestamp: 'now' }, status })).toBe(false);
});

test('a rollout is complete when all pods have the latest template and are ready', () => {
  const desired = { metadata: { ...metadata, generation: 2 }, spec: { replicas: 2 } };
  const done = { observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2 };
  expect(isRolledOut({ ...desired, status: done })).toBe(true);
  for (const change of [{ observedGeneration: 1 }, { replicas: 3 }, { updatedReplicas: 1 }, { readyReplicas: 1 }])
    expect(isRolledOut({ ...desired, status: { ...done, ...change } })).toBe(false);
});

test('a problem that lasts a minute is an error with the last log line', async () => {
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
  expect(await watch.check()).toContain('CrashLoopBackOff: back-off');
  await clock.advance(61_000);
  await expect(watch.check()).rejects.toMatchObject({
    code: 'SVC_CONTROLLER_START',
    message: expect.stringContaining('it said: the database refuses'),
  });
});
