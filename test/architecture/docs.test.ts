import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { errorCodes } from '../../src/shared/error-codes.ts';
import { linksOf, pages } from './markdown.ts';
import { allSources, productSources } from './source-tree.ts';

const pageByPath = new Map(pages.map((page) => [page.path, page]));

test('every link in the docs resolves to a file and a heading', () => {
  const broken = pages.flatMap((page) =>
    linksOf(page).flatMap(({ file, anchor, line }) => {
      if (!existsSync(file)) return [`${page.path}:${line}: there is no ${file}`];
      const target = pageByPath.get(file);
      return anchor === undefined || target === undefined || target.anchors.has(anchor)
        ? []
        : [`${page.path}:${line}: ${file} has no heading #${anchor}`];
    }),
  );
  expect(broken).toEqual([]);
});

test('every page that the source names exists', () => {
  const named = allSources.flatMap(({ path, text }) => (text.match(/\bdocs\/[\w/-]+\.md\b/g) ?? []).map((page) => ({ path, page })));
  expect(named.filter(({ page }) => !existsSync(page))).toEqual([]);
});

test('every error code and variable in the docs exists in the source', () => {
  const known = new Set(productSources.flatMap(({ text }) => text.match(/\b(?:SVC|SKYPILOT)_[A-Z_]*[A-Z]\b/g) ?? []));
  expect(Object.keys(errorCodes).filter((code) => !known.has(code))).toEqual([]);
  const unknown = pages.flatMap(({ path, text }) =>
    (text.match(/\b(?:SVC|SKYPILOT)_[A-Z_]*[A-Z]\b/g) ?? []).filter((name) => !known.has(name)).map((name) => `${path}: ${name}`),
  );
  expect(unknown).toEqual([]);
});

test('the README begins with the two commands for a fresh machine', () => {
  const readme = readFileSync('README.md', 'utf8');
  expect(readme).toContain('./svc serve up examples/hello/service.yaml');
  expect(readme).toContain('npm cit');
});
