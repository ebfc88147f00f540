import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aLocalRemote } from '../../test/support/local-remote.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { remoteCases } from './conformance.ts';
import type { LocalRemote } from './local.ts';

async function withRemote(use: (remote: LocalRemote) => Promise<void>): Promise<void> {
  await withTempHome(async (home) => {
    const baseDir = join(home, 'base');
    mkdirSync(baseDir);
    await use(aLocalRemote(baseDir, { SVC_COOKIE: 'c00kie' }));
  });
}

test.for(remoteCases)('local: $name', async ({ run }) => {
  await withRemote((remote) => expect(run(remote)).resolves.toBeUndefined());
});

test('localPath of a local machine returns the same path', async () => {
  await withRemote(async (remote) => {
    expect(remote.localPath('/a/b')).toBe('/a/b');
    await Promise.resolve();
  });
});
