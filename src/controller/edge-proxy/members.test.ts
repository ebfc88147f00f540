import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import { WatchedList } from '../../kubernetes/watched-list.ts';
import { seededRandom } from '../../shared/random.ts';
import { reportMembers } from './members.ts';
import type { BalancerPod } from './pods.ts';

test('aborting while the Kubernetes API does not answer settles without reported members', async () => {
  const api = new FakeKubeApi();
  api.failures.set('list', new Error('connect ECONNREFUSED'));
  const clock = new FakeClock();
  const { signal, abort } = withAbort();
  const pods = new WatchedList<BalancerPod>('/api/v1/namespaces/svc/pods', {}, { api, clock, random: seededRandom(1), signal });
  const reported: unknown[] = [];
  let isDone = false;
  const reporting = reportMembers(pods, 7000, signal, (members) => reported.push(members)).then(() => (isDone = true));
  await clock.advance(60_000);
  expect(isDone).toBe(false);
  abort();
  await reporting;
  expect(reported).toEqual([]);
});

function withAbort(): { readonly signal: AbortSignal; readonly abort: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}
