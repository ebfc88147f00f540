import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { systemClock } from '../shared/clock.ts';
import { watchFolder } from './watch-folder.ts';

test('a folder recreated before the next poll is watched as a new folder', async () => {
  await withTempHome(async (home) => {
    const dir = join(home, 'watched');
    mkdirSync(dir);
    const over = new AbortController();
    let notifications = 0;
    watchFolder(dir, () => (notifications += 1), systemClock, over.signal);
    try {
      rmSync(dir, { recursive: true });
      mkdirSync(dir);
      await waitFor('word of its end', () => notifications > 0);
      // Until the folder is watched again, a notification may be late but must not be lost.
      for (const content of ['one', 'two']) {
        await systemClock.sleep(300);
        const before = notifications;
        writeFileSync(join(dir, 'file'), content);
        await waitFor(`word of ${content}`, () => notifications > before);
      }
      expect(notifications).toBeGreaterThan(2);
    } finally {
      over.abort();
    }
  });
});
