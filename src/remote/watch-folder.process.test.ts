import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { systemClock } from '../shared/clock.ts';
import { watchFolder } from './watch-folder.ts';

test('a folder that is there again before anybody looked is watched as the new one it is', async () => {
  await withTempHome(async (home) => {
    const dir = join(home, 'watched');
    mkdirSync(dir);
    const over = new AbortController();
    let told = 0;
    watchFolder(dir, () => (told += 1), systemClock, over.signal);
    try {
      rmSync(dir, { recursive: true });
      mkdirSync(dir);
      await waitFor('word of its end', () => told > 0);
      // Until it is watched again, a change may be told late but not never.
      for (const content of ['one', 'two']) {
        await systemClock.sleep(300);
        const before = told;
        writeFileSync(join(dir, 'file'), content);
        await waitFor(`word of ${content}`, () => told > before, { timeoutMs: 10_000 });
      }
      expect(told).toBeGreaterThan(2);
    } finally {
      over.abort();
    }
  });
});
