import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { generatedFiles } from '../../scripts/gen/files.ts';

test.for(generatedFiles)('$path is what the source makes of it; else run: npm run gen', async ({ path, render }) => {
  expect(readFileSync(path, 'utf8')).toBe(await render());
});

test('everything in the folders for generated files is generated', () => {
  const made = generatedFiles.map(({ path }) => path);
  expect(globSync(['schemas/*', 'docs/reference/*']).filter((path) => !made.includes(path))).toEqual([]);
});
