import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { defaultConfig } from '../domain/config.ts';
import { loadConfig } from './load-config.ts';

test('a missing file gives the defaults, an existing one is read', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'config.yaml');
    expect(await loadConfig(path)).toBe(defaultConfig);
    writeFileSync(path, 'local: {isolation: none}\n');
    expect(await loadConfig(path)).toMatchObject({ local: { isolation: 'none' } });
  });
});

test('a folder, a Latin-1 file and a huge file are rejected', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'config.yaml');
    mkdirSync(path);
    await expect(loadConfig(path)).rejects.toMatchObject({
      code: 'SVC_FILE_UNREADABLE',
      message: `The configuration file ${path} is a folder.`,
    });
    const latin = join(home, 'latin.yaml');
    writeFileSync(latin, Buffer.from([0x61, 0x3a, 0x20, 0xe9]));
    await expect(loadConfig(latin)).rejects.toMatchObject({ code: 'SVC_FILE_UNREADABLE', hint: 'Save it as UTF-8.' });
    const huge = join(home, 'huge.yaml');
    writeFileSync(huge, Buffer.alloc(1_048_577, 0x20));
    await expect(loadConfig(huge)).rejects.toMatchObject({ code: 'SVC_INVALID_CONFIG' });
  });
});
