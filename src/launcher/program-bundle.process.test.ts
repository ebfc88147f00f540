import { existsSync, mkdirSync, readFileSync, readlinkSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { homePaths, type HomePaths } from '../shared/paths.ts';
import { entryBelow, programFile } from '../shared/program-files.ts';
import { codeVersion, fingerprintFile, svcVersion } from '../shared/version.ts';
import { prepareProgram } from './program-bundle.ts';

const withPaths = (use: (paths: HomePaths, programs: string) => Promise<void>): Promise<void> =>
  withTempHome((home) => use(homePaths(home, 0), join(home, 'programs')));

/** A folder of that name with the age of a forgotten one. */
function oldFolder(path: string): string {
  mkdirSync(path, { recursive: true });
  utimesSync(path, 0, 0);
  return path;
}

test('the prepared program is a bundle with the code version of the checkout', async () => {
  await withPaths(async (paths, programs) => {
    const program = await prepareProgram(paths);
    expect(program).toBe(paths.program);
    expect(readlinkSync(program)).toBe(join(programs, `bundle-${codeVersion()}`));
    expect(entryBelow(program, 'controller/main')).toBe(join(program, 'src/bundle/controller-main.js'));
    expect(`${svcVersion}+${readFileSync(join(program, fingerprintFile), 'utf8').trim()}`).toBe(codeVersion());
  });
});

test('a new bundle keeps the linked one, whose processes may still load modules', async () => {
  await withPaths(async (paths, programs) => {
    const used = oldFolder(join(programs, 'bundle-used'));
    const unused = oldFolder(join(programs, 'bundle-unused'));
    symlinkSync(used, paths.program);
    await prepareProgram(paths);
    expect([used, unused].map(existsSync)).toEqual([true, false]);
    expect(readlinkSync(paths.program)).not.toBe(used);
  });
});

test('a damaged bundle is made again, and a whole one is kept', async () => {
  await withPaths(async (paths) => {
    const file = entryBelow(await prepareProgram(paths), 'controller/main');
    const whole = readFileSync(file, 'utf8');
    writeFileSync(file, '');
    await prepareProgram(paths);
    expect(readFileSync(file, 'utf8')).toBe(whole);
    const { ino } = statSync(file);
    await prepareProgram(paths);
    expect(statSync(file).ino).toBe(ino);
  });
});

test('where nothing can be written, the program is the checkout', async () => {
  await withPaths(async (paths, programs) => {
    writeFileSync(programs, '');
    const program = await prepareProgram(paths);
    expect(program).toBe(programFile('.'));
    expect(entryBelow(program, 'controller/main')).toBe(join(program, 'src/controller/main.ts'));
  });
});
