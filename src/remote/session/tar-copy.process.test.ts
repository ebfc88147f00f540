import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterEach, expect, test, vi } from 'vitest';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { SvcError } from '../../shared/errors.ts';
import type { SessionMachine } from './session-machine.ts';
import { copyFolderByTar } from './tar-copy.ts';

afterEach(() => vi.unstubAllEnvs());

/** A machine whose tar accepts any input, as GNU tar does with an archive that ends between two files. */
const contented: SessionMachine = {
  name: 'there',
  host: 'there',
  async session({ input }) {
    if (input instanceof Readable) await buffer(input);
    return { exitCode: 0, how: 'ended', isStarted: true, said: '' };
  },
  lost: (what) => new SvcError('SVC_SSH', `The connection ${what}.`),
};

test('a copy fails when the local tar is killed half-way', async () => {
  await withTempHome(async (home) => {
    const [from, bin] = [join(home, 'from'), join(home, 'bin')];
    for (const dir of [from, bin]) mkdirSync(dir);
    writeFileSync(join(from, 'file'), 'content');
    writeFileSync(join(bin, 'tar'), '#!/bin/sh\nkill -KILL $$\n', { mode: 0o755 });
    vi.stubEnv('PATH', `${bin}${delimiter}${process.env['PATH']}`);
    const copied = copyFolderByTar(contented, from, '/there', {});
    await expect(copied).rejects.toMatchObject({ code: 'SVC_SSH', message: expect.stringContaining('was fed badly') });
  });
});
