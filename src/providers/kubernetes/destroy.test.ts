import { expect, test } from 'vitest';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import type { KubeApi, KubeRemoval } from '../../kubernetes/kube-api.ts';
import type { Pod } from '../../kubernetes/pod.ts';
import { removeEach } from './destroy.ts';

const ended = { name: 'main', state: { terminated: { exitCode: 143 } } };
const running = { name: 'main', state: { running: {} } };
const deletionTimestamp = '2026-01-01T00:00:00Z';
const loss = { message: 'It does not answer.', isTaken: false };

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
  await removeEach({ api, losses: async () => new Map([['lost', loss]]) }, [{ metadata, ...rest }], undefined);
  return graces;
}

const onNode = { spec: { nodeName: 'node1' }, status: { containerStatuses: [running] } };

test('a pod gets its time, once', async () => {
  expect(await gracesOf(onNode)).toEqual([10]);
  expect(await gracesOf({ ...onNode, deletionTimestamp })).toEqual([]);
});

test('what no node does is forced: nothing runs yet, the node is lost', async () => {
  expect(await gracesOf({ deletionTimestamp })).toEqual([0]);
  expect(await gracesOf({ ...onNode, spec: { nodeName: 'lost' }, deletionTimestamp })).toEqual([0]);
});

test('a pod that is to go and runs nothing any more is taken off the record, whatever its node says', async () => {
  const containerStatuses = [ended, { ...ended, name: 'sidecar' }];
  expect(await gracesOf({ ...onNode, status: { containerStatuses }, deletionTimestamp })).toEqual([0]);
  expect(await gracesOf({ ...onNode, status: { containerStatuses: [ended, running] }, deletionTimestamp })).toEqual([]);
  expect(await gracesOf({ ...onNode, status: {}, deletionTimestamp })).toEqual([]);
});
