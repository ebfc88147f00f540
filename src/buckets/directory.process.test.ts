import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { storeCases } from './conformance.ts';
import { DirectoryStore } from './directory.ts';

describe('a folder as a store', () => {
  test.each(storeCases)('$name', async ({ run }) => {
    await withTempHome(async (home) => {
      await expect(
        run({
          open: () => new DirectoryStore(join(home, 'buckets'), 'svc-0a1b2c3d-test'),
          fetch: (address) => Promise.resolve(readFileSync(fileURLToPath(address))),
        }),
      ).resolves.toBeUndefined();
    });
  });
});
