import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { generatedFiles } from '../../scripts/gen/files.ts';

test.for(generatedFiles)('$path is up to date; otherwise run: npm run gen', async ({ path, render }) => {
  expect(readFileSync(path, 'utf8')).toBe(await render());
});

test('every file in the folders for generated files is generated', () => {
  const made = generatedFiles.map(({ path }) => path);
  expect(globSync(['schemas/*', 'docs/reference/*']).filter((path) => !made.includes(path))).toEqual([]);
});
