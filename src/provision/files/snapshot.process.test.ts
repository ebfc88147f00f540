import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aTask } from '../../../test/support/builders.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { readTree, writeTree } from '../../../test/support/trees.ts';
import { takeSnapshot } from './snapshot.ts';

test('copies the working directory without .git, sockets and pipes', async () => {
  await withTempHome(async (home) => {
    const work = join(home, 'work dir ä');
    mkdirSync(join(work, '.git'), { recursive: true });
    writeFileSync(join(work, '.git/HEAD'), 'x');
    writeFileSync(join(work, 'serve.sh'), '#!/bin/sh\n', { mode: 0o755 });
    symlinkSync('missing', join(work, 'dangling'));
    execFileSync('mkfifo', [join(work, 'pipe')]);
    const dir = join(home, 'snapshot');
    const { note } = await takeSnapshot(aTask({ workdir: { kind: 'path', path: work } }), dir, home);
    expect(note).toBe("Not copied: 'pipe' is a pipe.");
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

test('omits ignored files, in mounts too, and keeps links to other folders', async () => {
  await withTempHome(async (home) => {
    const [work, data] = [join(home, 'work'), join(home, 'data')];
    writeTree(work, { '.gitignore': 'out/\n*.log\n', 'out/x': '', 'a.log': '', 'src/run.py': '', tool: { link: '/usr/bin/env' } });
    writeTree(data, { '.svcignore': '*\n!*.txt\n', 'a.txt': 'a', 'b.bin': 'b' });
    const dir = join(home, 'snapshot');
    const mount = { target: 'data', source: { kind: 'path', path: data } } as const;
    const { note } = await takeSnapshot(aTask({ workdir: { kind: 'path', path: work }, fileMounts: [mount] }), dir, home);
    expect(note).toBeUndefined();
    expect(Object.keys(readTree(join(dir, 'workdir'))).toSorted()).toEqual(['', '.gitignore', 'src', 'src/run.py', 'tool']);
    expect(Object.keys(readTree(join(dir, 'mounts/0')))).toEqual(['', 'a.txt']);
  });
});

test('copies 20,000 small files', async () => {
  await withTempHome(async (home) => {
    const work = join(home, 'work');
    for (let folder = 0; folder < 200; folder += 1) {
      mkdirSync(join(work, `${folder}`), { recursive: true });
      for (let file = 0; file < 100; file += 1) writeFileSync(join(work, `${folder}/${file}.txt`), `${file}`);
    }
    const dir = join(home, 'snapshot');
    await takeSnapshot(aTask({ workdir: { kind: 'path', path: work } }), dir, home);
    expect(readdirSync(join(dir, 'workdir'), { recursive: true })).toHaveLength(20_200);
  });
});

test('removes the partial copy when it fails', async () => {
  await withTempHome(async (home) => {
    const dir = join(home, 'snapshot');
    await expect(takeSnapshot(aTask({ workdir: { kind: 'path', path: join(home, 'missing') } }), dir, home)).rejects.toThrow(/missing/);
    expect(existsSync(dir)).toBe(false);
  });
});
