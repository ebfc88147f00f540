import { expect, test } from 'vitest';
import { aDisabledPlace } from '../../../test/support/places.ts';
import { withCluster } from '../../../test/support/high-availability.ts';
import { ensureInCluster } from './high-availability.ts';
import { checkWishInCluster } from './plan.ts';

test('a wish that no cluster can fulfil is refused before a cluster is asked', async () => {
  await withCluster(async (deps, api) => {
    const none = { ...deps.places, states: async () => [aDisabledPlace('kubernetes', 'no kubeconfig with a context')] };
    await expect(checkWishInCluster({ ...deps, places: none })).rejects.toMatchObject({ code: 'SVC_NEEDS_KUBERNETES' });
    await checkWishInCluster(deps);
    expect(api.asked).toEqual([]);
  });
  await withCluster(
    async (deps, api) => {
      await expect(checkWishInCluster(deps)).rejects.toMatchObject({ code: 'SVC_NO_CONTROLLER_IMAGE' });
      expect(api.asked).toEqual([]);
    },
    { image: undefined },
  );
});

test('a controller that is there is used as it is, whatever the configuration asks for by now', async () => {
  await withCluster(async (deps) => {
    await ensureInCluster(deps);
    const none = { ...deps.places, states: async () => [aDisabledPlace('kubernetes', 'no answer')] };
    await expect(checkWishInCluster({ ...deps, places: none })).resolves.toBeUndefined();
  });
});
