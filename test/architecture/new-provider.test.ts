import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newProviderFiles, writeNewProvider } from '../../scripts/new-provider/generate.ts';

/** A separate checkout, so that generated files never get into the product. */
let root = '';

const made = ['index', 'client', 'driver', 'errors', 'nimbus.process.test'].map((name) => `src/providers/nimbus/${name}.ts`);

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'svc-new-provider-'));
  for (const part of ['src', 'test/support', 'catalog', 'package.json', 'tsconfig.json', '.oxlintrc.json', '.oxfmtrc.json']) {
    mkdirSync(join(root, part, '..'), { recursive: true });
    cpSync(part, join(root, part), { recursive: true });
  }
  mkdirSync(join(root, 'docs/clouds'), { recursive: true });
  symlinkSync(join(process.cwd(), 'node_modules'), join(root, 'node_modules'));
  writeNewProvider(root, 'nimbus');
});

afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Returns the output of a program run in the checkout; throws with its output when it fails. */
function run(program: string, ...args: readonly string[]): string {
  return execFileSync(join(root, 'node_modules/.bin', program), args, { cwd: root, encoding: 'utf8', stdio: 'pipe' });
}

test('a new provider gets modules, a test, a page and a registry row', () => {
  expect([...made, 'docs/clouds/nimbus.md'].filter((path) => !existsSync(join(root, path)))).toEqual([]);
  const registry = readFileSync(join(root, 'src/providers/registry.ts'), 'utf8');
  expect(registry).toContain("'nimbus', 'ssh'");
  expect(registry).toContain("import('./nimbus/index.ts')).NimbusProvider(context)");
});

/** Each test runs a whole tool: ten seconds on a busy machine, and several times that on a slow one. */

test('the generated provider passes the type check', () => {
  const project = { extends: './tsconfig.json', include: [], files: [...made, 'src/providers/registry.ts'] };
  writeFileSync(join(root, 'tsconfig.nimbus.json'), JSON.stringify(project));
  expect(() => run('tsc', '--noEmit', '--project', 'tsconfig.nimbus.json')).not.toThrow();
});

test('the generated provider passes lint and format', () => {
  const files = [...made, 'src/providers/registry.ts'];
  expect(() => run('oxfmt', '--check', ...files)).not.toThrow();
  expect(() => run('oxlint', '--type-aware', '--deny-warnings', ...files)).not.toThrow();
});

test('the generated tests pass: conformance over a fake, and the not-written notice', () => {
  // Its first test loads everything, which takes long on a busy machine.
  const limits = { testTimeout: 600_000, hookTimeout: 600_000 };
  const config = {
    test: { include: ['src/providers/nimbus/*.test.ts', 'src/providers/registry.test.ts'], pool: 'forks', maxWorkers: 1, ...limits },
  };
  writeFileSync(join(root, 'vitest.config.ts'), `export default ${JSON.stringify(config)};\n`);
  expect(() => run('vitest', 'run', '--reporter=dot')).not.toThrow();
});

test.for([
  ['Nimbus', 'is no name for a place'],
  ['../x', 'is no name for a place'],
  ['aws', 'There is a src/providers/aws/index.ts already.'],
])('%s is refused', ([name = '', why]) => {
  expect(() => newProviderFiles(process.cwd(), name)).toThrow(why);
});

test('an unknown form of the registry is reported, and no file is written', () => {
  const path = join(root, 'src/providers/registry.ts');
  const before = readFileSync(path, 'utf8');
  writeFileSync(path, before.replace('providerNames', 'allNames'));
  try {
    expect(() => writeNewProvider(root, 'cirrus')).toThrow('src/providers/registry.ts has no');
    expect(existsSync(join(root, 'src/providers/cirrus'))).toBe(false);
  } finally {
    writeFileSync(path, before);
  }
});
