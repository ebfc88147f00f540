import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { systemClock } from '../../shared/clock.ts';
import { ignoreRules } from './ignore-rules.ts';

/** Runs git without the user's own settings. */
function git(root: string, ...args: readonly string[]): string {
  const env = { PATH: process.env['PATH'], HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1', GIT_CEILING_DIRECTORIES: dirname(root) };
  return execFileSync('git', ['-C', root, ...args], { encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'pipe'] });
}

function write(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

/** Files that are kept, in order. */
async function kept(root: string): Promise<readonly string[]> {
  const isIgnored = await ignoreRules(root, systemClock);
  const walk = (folder: string): readonly string[] =>
    readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (isIgnored(path, entry.isDirectory())) return [];
      return entry.isDirectory() ? walk(path) : [path];
    });
  return walk('').toSorted();
}

const asGitHasIt = (root: string): readonly string[] =>
  git(root, 'ls-files', '-z', '--cached', '--others', '--exclude-standard')
    .split('\0')
    .filter((path) => path !== '')
    .toSorted();

const name = fc.constantFrom('a', 'b', 'ab', 'a.log', 'b.txt', 'é', 'x y', '-a', ']', 'a\nb');
const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'));
const letters = ['a', 'b', 'ab', '.log', 'é', 'x y', ' ', '#', '!', '-', '\r', '\\', '\\a', '\\ '];
const wildcards = ['*', '**', '?', '/', '/'];
const sets = ['[ab]', '[!a]', '[^-b]', '[]a]', '[a-c]', '[z-a]', '[é]', '[[:alpha:]]', '[[:x:]]', '[[:', '[b-', '[\\]]'];
const piece = fc.constantFrom(...letters, ...wildcards, ...sets);
const rule = fc.record({
  start: fc.constantFrom('', '', '!', '/', '**/'),
  pieces: fc.array(piece, { minLength: 1, maxLength: 5 }),
  end: fc.constantFrom('', '', '/', '/**', ' '),
});
/** Patterns where git differs from its documentation: an escaped slash, and two stars after literal text. */
const isUndocumented = (line: string): boolean => /\\\/|[^/*!]\*{2,}\//.test(line);
const rules = fc
  .array(rule, { minLength: 1, maxLength: 6 })
  .map((all) => all.map(({ start, pieces, end }) => `${start}${pieces.join('')}${end}`).filter((line) => !isUndocumented(line)))
  .map((lines) => lines.join('\n'));

test('ignores the same files as git for any patterns', async () => {
  await withTempHome(async (home) => {
    const root = join(home, 'repository');
    mkdirSync(root);
    git(root, 'init', '-q');
    const property = fc.asyncProperty(
      fc.uniqueArray(path, { minLength: 1, maxLength: 15 }),
      rules,
      fc.dictionary(fc.constantFrom('a', 'b', 'a/b', 'ab/a'), rules, { maxKeys: 2 }),
      async (paths, top, nested) => {
        for (const entry of readdirSync(root)) if (entry !== '.git') rmSync(join(root, entry), { recursive: true });
        for (const one of paths) {
          try {
            write(root, { [one]: '' });
          } catch {
            // The path conflicts with another one: one needs a file where the other needs a folder.
          }
        }
        write(root, { '.gitignore': top });
        for (const [folder, text] of Object.entries(nested)) {
          try {
            write(root, { [`${folder}/.gitignore`]: text });
          } catch {
            // The same conflict.
          }
        }
        expect(await kept(root)).toEqual(asGitHasIt(root));
      },
    );
    await fc.assert(property, { numRuns: 150 });
  });
});

test('two stars after literal text count as one', async () => {
  await withTempHome(async (home) => {
    write(home, { '.gitignore': 'b**/x\n' });
    write(home, Object.fromEntries(['b/x', 'ba/x', 'ba/y/x', 'bx'].map((file) => [file, ''])));
    expect(await kept(home)).toEqual(['.gitignore', 'ba/y/x', 'bx']);
  });
});

test('all ignore files apply to the content of a re-included folder', async () => {
  await withTempHome(async (home) => {
    const root = join(home, 'repository');
    const files = ['a/b[1] c/d/x', 'a/b[1] c/x.log', 'a/b1 c/x', 'a/e/x'];
    write(root, {
      '.gitignore': 'a/*\n*.log\n',
      'a/.gitignore': '!b\\[1] c\n!.gitignore\n',
      ...Object.fromEntries(files.map((file) => [file, ''])),
    });
    git(root, 'init', '-q');
    expect(await kept(root)).toEqual(['.gitignore', 'a/.gitignore', 'a/b[1] c/d/x']);
    expect(asGitHasIt(root)).toEqual(await kept(root));
  });
});

test('the content of a folder is included although the surrounding repository ignores it', async () => {
  await withTempHome(async (home) => {
    const root = join(home, 'repository');
    write(root, { '.gitignore': 'build/\nout\n', 'build/site/run.py': '', 'build/site/out': '' });
    git(root, 'init', '-q');
    expect(await kept(join(root, 'build/site'))).toEqual(['run.py']);
  });
});

test('a tracked file is included despite a rule, but not its neighbours', async () => {
  await withTempHome(async (home) => {
    const root = join(home, 'repository');
    write(root, {
      '.gitignore': 'weights/\n*.bin\n',
      'weights/small/a.bin': '',
      'weights/small/b.bin': '',
      'weights/big': '',
      'c.bin': '',
    });
    git(root, 'init', '-q');
    git(root, 'add', '-f', '.gitignore', 'weights/small/a.bin');
    expect(await kept(root)).toEqual(['.gitignore', 'weights/small/a.bin']);
  });
});

test("the surrounding repository's rules apply, including those of its exclude file", async () => {
  await withTempHome(async (home) => {
    const root = join(home, 'repository');
    const work = join(root, 'services/chat');
    write(root, { '.gitignore': '*.log\n/services/chat/out\n', 'services/.gitignore': '!keep.log\n' });
    write(work, { 'run.py': '', 'a.log': '', 'keep.log': '', 'out/x': '', 'deep/out/x': '', secret: '' });
    git(root, 'init', '-q');
    writeFileSync(join(root, '.git/info/exclude'), 'secret\n');
    expect(await kept(work)).toEqual(['deep/out/x', 'keep.log', 'run.py']);
  });
});

test('.gitignore applies without a repository too, and .git is never included', async () => {
  await withTempHome(async (home) => {
    write(home, { '.gitignore': 'out\n', 'out/x': '', 'run.py': '', 'vendored/.git': 'gitdir: elsewhere', 'vendored/lib.py': '' });
    expect(await kept(home)).toEqual(['.gitignore', 'run.py', 'vendored/lib.py']);
  });
});

test('.svcignore takes precedence over .skyignore, and that over .gitignore', async () => {
  await withTempHome(async (home) => {
    write(home, { '.gitignore': 'a\n', a: '', b: '', c: '', 'd/a': '' });
    expect(await kept(home)).toEqual(['.gitignore', 'b', 'c']);
    write(home, { '.skyignore': 'b\n' });
    expect(await kept(home)).toEqual(['.gitignore', '.skyignore', 'a', 'c', 'd/a']);
    write(home, { '.svcignore': 'c\n', 'd/.svcignore': 'a\n' });
    expect(await kept(home)).toEqual(['.gitignore', '.skyignore', '.svcignore', 'a', 'b', 'd/.svcignore']);
  });
});

test('patterns of .skyignore match at any depth unless they begin with a slash', async () => {
  await withTempHome(async (home) => {
    write(home, {
      '.skyignore': '# notes\nx/out\n/top\n!top\nw/  \n',
      'x/out': '',
      'y/x/out': '',
      'y/top': '',
      top: '',
      'y/.skyignore': 'top\n',
    });
    write(home, { 'y/w/x': '', 'y/!top': '' });
    expect(await kept(home)).toEqual(['.skyignore', 'y/.skyignore', 'y/top']);
  });
});
