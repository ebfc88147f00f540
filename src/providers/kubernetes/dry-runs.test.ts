import { expect, test } from 'vitest';
import { aMachineSpec, anOffer } from '../../../test/support/builders.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import { defaultConfig } from '../../domain/config.ts';
import { seededRandom } from '../../shared/random.ts';
import { KubernetesCluster } from './kubernetes-cluster.ts';
import { planMachine, type Creation } from './create.ts';
import { PodWatches } from './pod-watches.ts';
import { DryRuns } from './dry-runs.ts';

test('a pod description gets one dry run; the 100 most recently used are remembered', async () => {
  const clock = new FakeClock();
  const api = new FakeKubeApi();
  const cluster = new KubernetesCluster(api, clock, new PodWatches({ clock, random: seededRandom(1) }, () => Promise.resolve(api)));
  const dryRuns = new DryRuns();
  /** Whether a dry run for a pod with this image was sent. */
  const isShown = async (image: string): Promise<boolean> => {
    const creation: Creation = {
      cluster,
      config: { ...defaultConfig.kubernetes, autoscaler: 'generic' },
      offer: anOffer({ provider: 'kubernetes', region: 'prod', instanceType: '1CPU--2GB+' }),
      spec: aMachineSpec({ imageId: image }),
      ref: { context: 'prod', namespace: 'ns', base: 'svc-a' },
      command: ['init'],
      clock,
      signal: undefined,
    };
    const plan = await planMachine(creation);
    const before = api.asked.length;
    await dryRuns.once(creation, plan, 'svc-a');
    return api.asked.slice(before).some((asked) => asked.startsWith('apply '));
  };
  const shown: boolean[] = [];
  for (let count = 0; count < 100; count += 1) shown.push(await isShown(`docker:image:${count}`));
  expect(shown).toEqual(Array(100).fill(true));
  expect(await isShown('docker:image:0')).toBe(false);
  expect(await isShown('docker:image:100')).toBe(true);
  expect(await isShown('docker:image:0')).toBe(false);
  expect(await isShown('docker:image:1')).toBe(true);
});
