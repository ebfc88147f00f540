import { expect, test, vi } from 'vitest';
import { withWorld } from '../../../test/support/service-world.ts';
import { FakeProvider } from '../../providers/fake/index.ts';
import { SvcError } from '../../shared/errors.ts';

const down = async (): Promise<never> => {
  throw new SvcError('SVC_PLACE_FAILED', 'The API server does not answer.');
};

test.each([4_200, 9_000, 15_200, 20_000])(
  'the release of an unclear ask spares the next machine, after %i ms without answers',
  async (downMs) => {
    const calls = (['create', 'list'] as const).map((call) => vi.spyOn(FakeProvider.prototype, call).mockImplementation(down));
    try {
      await withWorld(
        async (world) => {
          await world.clock.advance(downMs);
          for (const call of calls) call.mockRestore();
          await world.untilReady(1);
          await world.clock.advance(120_000);
          expect([await world.states(), world.cloud.living.length]).toEqual([['1 READY'], 1]);
        },
        { minReplicas: 1, maxReplicas: 1 },
      );
    } finally {
      for (const call of calls) call.mockRestore();
    }
  },
);
