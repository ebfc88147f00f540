import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { withLocalProvider } from '../../test/support/local-provider.ts';
import { needs } from '../../test/support/needs.ts';
import { runInside, withCommand } from '../../test/support/run-inside.ts';

// bubblewrap complains as about a covered path that disappeared.
const failing = (meanwhile: string): string =>
  `case "$*" in *--info-fd*) ${meanwhile}; echo "bwrap: Can't find source path /gone" >&2; exit 1 ;; esac`;

needs('bwrap', () => {
  test('bubblewrap starts at most five times, and leaves no file behind', async () => {
    await withLocalProvider({ isolation: 'bwrap' }, async (provider) => {
      const { remote } = await provider.machine('a');
      const folder = dirname(remote.baseDir);
      const starts = join(folder, 'starts');
      const result = await withCommand('bwrap', failing(`echo >> '${starts}'`), () => runInside(remote, 'echo ran'));
      expect(result).toMatchObject({ exitCode: 1, stdout: '', stderr: "bwrap: Can't find source path /gone\n" });
      expect(readFileSync(starts, 'utf8')).toHaveLength(5);
      expect(readdirSync(folder).filter((name) => /^(messages|pipe)\./.test(name))).toEqual([]);
    });
  });

  test('bubblewrap is not started again once its machine is to be removed', async () => {
    await withLocalProvider({ isolation: 'bwrap' }, async (provider) => {
      const { remote } = await provider.machine('a');
      const removing = failing(`: > '${join(dirname(remote.baseDir), 'destroying')}'`);
      const result = await withCommand('bwrap', removing, () => runInside(remote, 'echo ran'));
      expect(result).toMatchObject({ exitCode: 98, stdout: '' });
    });
  });
});
