import { existsSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { homePaths } from '../shared/paths.ts';
import { sweepTemporaryFiles } from './temporary-files.ts';

const now = 1_900_000_000_000;
/** Above the largest pid of Linux. */
const dead = 4_194_305;

test('the sweep removes only old temporary files of dead writers, and no file of users', async () => {
  await withTempHome((home) => {
    const put = (path: string, ageMs: number): string => {
      const file = join(home, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, '');
      utimesSync(file, (now - ageMs) / 1_000, (now - ageMs) / 1_000);
      return file;
    };
    const hour = 3_600_000;
    const left = [`controller.json.${dead}.a1b2c3.tmp`, `local/machines/m1/machine.json.${dead}.a1b2c3.tmp`].map((path) =>
      put(path, 2 * hour),
    );
    const kept = [
      put(`boot.json.${dead}.a1b2c3.tmp`, hour / 2),
      put(`boot.json.${process.pid}.a1b2c3.tmp`, 2 * hour),
      put('mine.tmp', 2 * hour),
      put(`services/0a1b/v1/work.${dead}.a1b2c3.tmp`, 2 * hour),
      put(`local/machines/m1/base/work.${dead}.a1b2c3.tmp`, 2 * hour),
    ];
    expect(sweepTemporaryFiles(homePaths(home, 0), now)).toBe(2);
    expect(left.filter((file) => existsSync(file))).toEqual([]);
    expect(kept.filter((file) => !existsSync(file))).toEqual([]);
    return Promise.resolve();
  });
});
