import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aTask } from '../../test/support/builders.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { takeSnapshot } from './snapshot.ts';

test('copies the working directory as it is, but for history, sockets and pipes', async () => {
  await withTempHome(async (home) => {
    const work = join(home, 'work dir ä');
    mkdirSync(join(work, '.git'), { recursive: true });
    writeFileSync(join(work, '.git/HEAD'), 'x');
    writeFileSync(join(work, 'serve.sh'), '#!/bin/sh\n', { mode: 0o755 });
    symlinkSync('missing', join(work, 'dangling'));
    execFileSync('mkfifo', [join(work, 'pipe')]);
    const dir = join(home, 'snapshot');
    await takeSnapshot(aTask({ workdir: { kind: 'path', path: work } }), dir, home);
    const copy = join(dir, 'workdir');
    expect(lstatSync(join(copy, 'serve.sh')).mode & 0o777).toBe(0o755);
    expect(readlinkSync(join(copy, 'dangling'))).toBe('missing');
    expect([existsSync(join(copy, '.git')), existsSync(join(copy, 'pipe'))]).toEqual([false, false]);
  });
});

test('copies file mounts by their number', async () => {
  await withTempHome(async (home) => {
    const file = join(home, 'tokens.txt');
    writeFileSync(file, 'hello');
    const dir = join(home, 'snapshot');
    await takeSnapshot(aTask({ fileMounts: [{ target: 'data/tokens.txt', source: { kind: 'path', path: file } }] }), dir, home);
    expect(readFileSync(join(dir, 'mounts/0'), 'utf8')).toBe('hello');
  });
});

test('leaves nothing behind when it fails', async () => {
  await withTempHome(async (home) => {
    const dir = join(home, 'snapshot');
    await expect(takeSnapshot(aTask({ workdir: { kind: 'path', path: join(home, 'missing') } }), dir, home)).rejects.toThrow(/missing/);
    expect(existsSync(dir)).toBe(false);
  });
});
