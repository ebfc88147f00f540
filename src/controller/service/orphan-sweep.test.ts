import { expect, test, vi } from 'vitest';
import { withWorld } from '../../../test/support/service-world.ts';
import { FakeProvider } from '../../providers/fake/index.ts';
import { SvcError } from '../../shared/errors.ts';

test('sweeps ask everywhere in growing pauses, and otherwise only where machines were requested', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    await world.crash();
    let scopes: readonly string[] = [];
    let answers = false;
    const list = vi.spyOn(FakeProvider.prototype, 'list').mockImplementation(async (tags, { requestedOnly }) => {
      if (tags['svc-service-key'] === undefined || tags['svc-replica'] !== undefined) return [];
      scopes = [...scopes, requestedOnly === true ? 'requested' : 'everywhere'];
      if (!answers) throw new SvcError('SVC_PLACE_FAILED', 'The provider does not answer.');
      return [];
    });
    try {
      await world.start();
      await world.clock.advance(30_000);
      expect(scopes).toEqual(['everywhere']);
      answers = true;
      await world.clock.advance(600_000);
      const everywhere = scopes.flatMap((scope, sweep) => (scope === 'everywhere' ? [sweep] : []));
      // The first one failed, so it was repeated.
      expect(everywhere).toEqual([0, 1, 2, 3, 5, 9]);
    } finally {
      list.mockRestore();
    }
  });
});
