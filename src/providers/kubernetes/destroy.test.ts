import { expect, test } from 'vitest';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import type { KubeApi, KubeRemoval } from '../../kubernetes/kube-api.ts';
import type { Pod } from '../../kubernetes/pod.ts';
import { removeEach } from './destroy.ts';
import type { NodeTrouble } from './nodes/node-health.ts';

const ended = { name: 'main', state: { terminated: { exitCode: 143 } } };
const running = { name: 'main', state: { running: {} } };
const deletionTimestamp = '2026-01-01T00:00:00Z';
const silent = {
  kind: 'silent',
  message: 'It does not answer.',
  isTaken: false,
  hasNoHeartbeat: true,
  isLasting: true,
  isWidespread: false,
} as const;

async function gracesOf(
  pod: Pick<Pod, 'spec' | 'status'> & { readonly deletionTimestamp?: string },
): Promise<readonly (number | undefined)[]> {
  const graces: (number | undefined)[] = [];
  const api: KubeApi = Object.assign(new FakeKubeApi(), {
    remove: async (_path: string, { gracePeriodSeconds }: KubeRemoval = {}) => {
      graces.push(gracePeriodSeconds);
      return true;
    },
  });
  const { deletionTimestamp: since, ...rest } = pod;
  const metadata = {
    name: 'p',
    namespace: 'default',
    uid: 'u',
    resourceVersion: '1',
    ...(since !== undefined && { deletionTimestamp: since }),
  };
  const troubles = new Map<string, NodeTrouble>([
    ['silent', silent],
    ['silent for a moment', { ...silent, isLasting: false }],
    ['silent with most', { ...silent, isWidespread: true }],
    ['removed', { kind: 'removed', message: 'It is no longer in the cluster.' }],
  ]);
  await removeEach({ api, troubles: async () => troubles }, [{ metadata, ...rest }], undefined);
  return graces;
}

const onNode = { spec: { nodeName: 'node1' }, status: { containerStatuses: [running] } };

test('a pod is deleted once, with a grace period', async () => {
  expect(await gracesOf(onNode)).toEqual([10]);
  expect(await gracesOf({ ...onNode, deletionTimestamp })).toEqual([]);
});

test.each(['silent', 'removed'])('a pod is force-deleted when its node is %s or not yet assigned', async (nodeName) => {
  expect(await gracesOf({ deletionTimestamp })).toEqual([0]);
  expect(await gracesOf({ ...onNode, spec: { nodeName }, deletionTimestamp })).toEqual([0]);
});

test.each(['silent for a moment', 'silent with most'])('a deletion waits for a node that is %s', async (nodeName) => {
  expect(await gracesOf({ ...onNode, spec: { nodeName } })).toEqual([10]);
  expect(await gracesOf({ ...onNode, spec: { nodeName }, deletionTimestamp })).toEqual([]);
});

test('a deleted pod whose containers have ended is force-deleted, whatever its node reports', async () => {
  const containerStatuses = [ended, { ...ended, name: 'sidecar' }];
  expect(await gracesOf({ ...onNode, status: { containerStatuses }, deletionTimestamp })).toEqual([0]);
  expect(await gracesOf({ ...onNode, status: { containerStatuses: [ended, running] }, deletionTimestamp })).toEqual([]);
  expect(await gracesOf({ ...onNode, status: {}, deletionTimestamp })).toEqual([]);
});
