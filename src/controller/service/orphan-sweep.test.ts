import { expect, test, vi } from 'vitest';
import { withWorld } from '../../../test/support/service-world.ts';
import { FakeProvider } from '../../providers/fake/index.ts';
import { SvcError } from '../../shared/errors.ts';

test('after the first complete sweep, sweeps ask only where machines were requested', async () => {
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
      await world.clock.advance(180_000);
      expect(scopes).toEqual(['everywhere', 'everywhere', 'requested', 'requested']);
    } finally {
      list.mockRestore();
    }
  });
});
