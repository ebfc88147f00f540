import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { productSources } from './source-tree.ts';

const versions = z.record(z.string(), z.string()).default({});
const manifest = z
  .object({ dependencies: versions, devDependencies: versions, optionalDependencies: versions, engines: z.object({ node: z.string() }) })
  .parse(JSON.parse(readFileSync('package.json', 'utf8')));
const lock = z
  .object({
    packages: z.record(
      z.string(),
      z.object({
        hasInstallScript: z.boolean().default(false),
        optional: z.boolean().default(false),
        os: z.union([z.string().transform((name) => [name]), z.array(z.string())]).optional(),
      }),
    ),
  })
  .parse(JSON.parse(readFileSync('package-lock.json', 'utf8')));

test('every package version is exact, so checkouts of one commit are identical', () => {
  const all = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies };
  expect(Object.entries(all).filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
});

test('no package needs an install script, which npm refuses or skips', () => {
  const needed = Object.entries(lock.packages).filter(([, entry]) => !entry.optional || (entry.os ?? ['linux']).includes('linux'));
  expect(needed.filter(([, entry]) => entry.hasInstallScript).map(([path]) => path)).toEqual([]);
});

test('the dependencies are exactly the packages that the product uses', () => {
  const used = new Set(
    productSources.flatMap(({ imports }) => imports.flatMap(({ packageName, kind }) => (kind === 'type' ? [] : (packageName ?? [])))),
  );
  expect([...used].toSorted()).toEqual(Object.keys(manifest.dependencies).toSorted());
});

test('package.json and package-lock.json agree, so `npm ci` works', () => {
  const npm = ['ci', '--dry-run', '--ignore-scripts', '--offline', '--no-audit', '--no-fund', '--loglevel=error'];
  expect(() => execFileSync('npm', npm, { stdio: 'pipe', encoding: 'utf8' })).not.toThrow();
});
