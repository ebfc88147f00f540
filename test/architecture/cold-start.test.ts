import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../support/temp-home.ts';
import { staticallyLoaded } from './source-tree.ts';

const entry = 'src/cli/main.ts';

/** Ten modules cost about 20 ms of start-up; `svc --help` must take 100 ms. */
const maxProjectModules = 25;

/** Lists the modules that one run of the CLI loads, by static and dynamic imports. */
function loadedBy(home: string, ...args: readonly string[]): { readonly project: readonly string[]; readonly packages: readonly string[] } {
  const record = join(home, `modules${args.join('')}`);
  execFileSync('node_modules/.bin/node', ['--import', './test/architecture/record-modules.ts', entry, ...args], {
    env: { ...process.env, SVC_HOME: home, SVC_TEST_MODULES: record },
    stdio: 'ignore',
  });
  const files = readFileSync(record, 'utf8')
    .trim()
    .split('\n')
    .map((path) => relative('.', path));
  const inPackages = files.flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
  return { project: files.filter((path) => path.startsWith('src/')), packages: [...new Set(inPackages)] };
}

test('the CLI entry point loads few modules and no package but commander', () => {
  const { files, packages } = staticallyLoaded(entry);
  expect([...packages].filter((name) => !name.startsWith('node:'))).toEqual(['commander']);
  expect(files.size).toBeLessThan(maxProjectModules);
});

test('--help and --version load few modules beyond the entry point', async () => {
  await withTempHome((home) => {
    for (const argument of ['--help', '--version']) {
      const { project, packages } = loadedBy(home, argument);
      expect(packages).toEqual(['commander']);
      expect(project.slice(maxProjectModules - 1)).toEqual([]);
    }
  });
});
