import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import { defaultConfig } from '../../domain/config.ts';
import type { AllowedDisruption } from '../../domain/disruption.ts';
import { kubernetesContextConfig } from '../../domain/kubernetes/kubernetes-context.ts';
import type { Pod } from '../../kubernetes/pod.ts';
import { SvcError } from '../../shared/errors.ts';
import { KubernetesCluster } from './kubernetes-cluster.ts';
import { machineIdOf, ownLabels, podNames } from './names.ts';
import { byMachine } from './pod-watches.ts';
import { ReadinessReporter } from './readiness.ts';

const budgets = '/apis/policy/v1/namespaces/ns/poddisruptionbudgets';
const gate = { readinessGates: [{ conditionType: 'svc.dev/ready' }] };

function podsOf(base: string, spec: Pod['spec'] = gate, status?: Pod['status']): readonly Pod[] {
  return podNames(base).map((name) => ({
    metadata: {
      name,
      uid: `uid-${name}`,
      resourceVersion: '1',
      namespace: 'ns',
      labels: { [ownLabels.machine]: base, 'svc-service-key': 'abcd' },
      ownerReferences: [{ kind: 'ConfigMap', name: 'svc-abcd', uid: 'anchor' }],
    },
    spec,
    ...(status && { status }),
  }));
}

const was = (status: string) => ({ conditions: [{ type: 'svc.dev/ready', status }] });

/** A Kubernetes cluster with these pods, and what one report makes of it. */
function aReporter(pods: readonly Pod[]) {
  const api = new FakeKubeApi();
  const clock = new FakeClock();
  const cluster = new KubernetesCluster(api, clock, { pods: () => byMachine(pods), nodes: () => undefined });
  const reporter = new ReadinessReporter(clock, {
    cluster: () => Promise.resolve(cluster),
    configOf: (name) => Promise.resolve(kubernetesContextConfig(defaultConfig.kubernetes, name)),
  });
  const report = (disruption: AllowedDisruption, ready: Readonly<Record<string, boolean>>): Promise<void> => {
    const machines = Object.entries(ready).map(([base, isReady]) => ({
      id: machineIdOf({ context: 'prod', namespace: 'ns', base }),
      isReady,
    }));
    return reporter.report({ ownerKey: 'abcd', machines, disruption }, undefined);
  };
  const changes = () => api.asked.filter((asked) => !/^(?:list|text) /.test(asked));
  return { api, report, changes, budget: () => api.objects.get(`${budgets}/svc-abcd`) };
}

test.each<readonly [disruption: AllowedDisruption, minAvailable: number]>([
  ['one', 1],
  ['none', 2],
])('when %s of two ready replicas may end, the budget keeps %d', async (disruption, minAvailable) => {
  const { report, budget } = aReporter(['a', 'b', 'c'].flatMap((base) => podsOf(base)));
  await report(disruption, { a: true, b: true, c: false });
  expect(budget()).toMatchObject({
    metadata: { ownerReferences: [{ kind: 'ConfigMap', name: 'svc-abcd', uid: 'anchor' }] },
    spec: { minAvailable, selector: { matchLabels: { 'svc-service-key': 'abcd' } } },
  });
});

test('of groups of pods, one pod may end', async () => {
  const { report, budget } = aReporter([...podsOf('a-x2'), ...podsOf('b-x2')]);
  await report('one', { 'a-x2': true, 'b-x2': true });
  expect(budget()).toMatchObject({ spec: { minAvailable: 3 } });
});

test('one ready replica, a sleeping service, or no replica has no budget', async () => {
  const { report, budget, changes } = aReporter(['a', 'b'].flatMap((base) => podsOf(base)));
  for (const [disruption, ready] of [
    ['one', { a: true, b: false }],
    ['any', { a: true, b: true }],
    ['none', {}],
  ] as const) {
    await report('one', { a: true, b: true });
    expect(budget()).toBeDefined();
    await report(disruption, ready);
    expect(budget()).toBeUndefined();
  }
  const before = changes().length;
  await report('any', {});
  expect(changes().length).toBe(before);
});

test("a user's budget for the pods replaces that of svc", async () => {
  const { api, report, budget } = aReporter(['a', 'b'].flatMap((base) => podsOf(base)));
  api.put(`${budgets}/other`, { spec: { selector: { matchLabels: { app: 'mail' } } } });
  await report('one', { a: true, b: true });
  expect(budget()).toBeDefined();
  api.put(`${budgets}/mine`, { spec: { selector: { matchLabels: { 'svc-service-key': 'abcd' } } } });
  await report('one', { a: true, b: true });
  expect(budget()).toBeUndefined();
});

test('the condition follows the replica, and an equal one is not written again', async () => {
  const { report, changes } = aReporter([
    ...podsOf('a', gate, was('True')),
    ...podsOf('b', gate, was('True')),
    ...podsOf('c'),
    ...podsOf('d', {}),
  ]);
  await report('any', { a: true, b: false, c: true, d: true });
  expect(changes().map((change) => change.replace(/"lastTransitionTime":"[^"]*"/, '"at"'))).toEqual([
    'merge {"metadata":{"uid":"uid-b"},"status":{"conditions":[{"type":"svc.dev/ready","status":"False","reason":"ReplicaNotReady","message":"svc sends this replica no requests: see svc serve status","at"}]}} /api/v1/namespaces/ns/pods/b/status',
    'merge {"metadata":{"uid":"uid-c"},"status":{"conditions":[{"type":"svc.dev/ready","status":"True","reason":"ReplicaReady","message":"","at"}]}} /api/v1/namespaces/ns/pods/c/status',
  ]);
});

test('without the right to budgets, conditions are still written, and vice versa', async () => {
  for (const [denied, kept] of [
    [budgets, 'merge'],
    ['/status', 'apply'],
  ] as const) {
    const { api, report, changes } = aReporter(['a', 'b'].flatMap((base) => podsOf(base)));
    api.failures.set(denied, new SvcError('SVC_DENIED', 'forbidden'));
    await report('one', { a: true, b: true });
    expect(changes().some((change) => change.startsWith(kept))).toBe(true);
  }
});
