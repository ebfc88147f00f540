import { expect, test } from 'vitest';
import { aDisabledProvider } from '../../../test/support/providers.ts';
import { withFakeKubeApi } from '../../../test/support/high-availability.ts';
import { ensureInCluster } from './high-availability.ts';
import { preflightInCluster } from './plan.ts';

test('the preflight refuses an impossible configuration without any Kubernetes call', async () => {
  await withFakeKubeApi(async (deps, api) => {
    const none = { ...deps.providers, states: async () => [aDisabledProvider('kubernetes', 'no kubeconfig with a context')] };
    await expect(preflightInCluster({ ...deps, providers: none })).rejects.toMatchObject({ code: 'SVC_NEEDS_KUBERNETES' });
    await preflightInCluster(deps);
    expect(api.asked).toEqual([]);
  });
  await withFakeKubeApi(
    async (deps, api) => {
      await expect(preflightInCluster(deps)).rejects.toMatchObject({ code: 'SVC_NO_CONTROLLER_IMAGE' });
      expect(api.asked).toEqual([]);
    },
    { image: undefined },
  );
});

test('the preflight accepts an existing controller whatever the configuration is', async () => {
  await withFakeKubeApi(async (deps) => {
    await ensureInCluster(deps);
    const none = { ...deps.providers, states: async () => [aDisabledProvider('kubernetes', 'no answer')] };
    await expect(preflightInCluster({ ...deps, providers: none })).resolves.toBeUndefined();
  });
});
