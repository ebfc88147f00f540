import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { wholeEnv } from '../shared/env.ts';
import { homePaths } from '../shared/paths.ts';
import { programEntry } from '../shared/program-files.ts';
import { prepareHome } from '../shared/system/prepare-home.ts';

test('after a killed restore a controller does not start, and names the command', async () => {
  await withTempHome((home) => {
    const paths = homePaths(home, process.getuid?.() ?? 0);
    prepareHome(paths);
    writeFileSync(paths.restoreMark, JSON.stringify({ file: '/backups/b.tar.gz', staging: 'restore-0a' }));
    const { status } = spawnSync(process.execPath, [programEntry('controller/main')], { env: { ...wholeEnv(), SVC_HOME: home } });
    expect(status).toBe(70);
    const reply = readFileSync(paths.startError, 'utf8');
    expect(reply).toContain('SVC_HOME_UNUSABLE');
    expect(reply).toContain('svc controller restore /backups/b.tar.gz');
    return Promise.resolve();
  });
});
