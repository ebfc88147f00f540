import { expect, test } from 'vitest';
import { unusedExports } from './export-use.ts';
import { maskSource } from './mask-source.ts';
import { allSources, productSources, readSources, type SourceFile } from './source-tree.ts';

test('every export of src/ is imported by another file', () => {
  const importers = [...allSources, ...readSources('{test,scripts,bench}/**/*.ts')];
  const unused = unusedExports(productSources, importers);
  expect(unused.map(({ path, line, name }) => `${path}:${line}: nothing imports ${name}: remove the word export, or the code`)).toEqual([]);
});

const file = (path: string, text: string): SourceFile => ({ path, text, codeOnly: maskSource(text).codeOnly, imports: [] });

test.each([
  ["import { a } from './x.ts';", ['B', 'c']],
  ["import { a as other, type B } from './x.ts';", ['c']],
  ["import type {\n  a,\n  B,\n} from './x.ts';", ['c']],
  ["export { a } from './x.ts';", ['B', 'c']],
  ["import * as x from './x.ts';\nx.c();", ['a', 'B']],
  ["const { a } = await import('./x.ts');", ['B', 'c']],
  ["import { a, B } from './y.ts';", ['a', 'B', 'c']],
])('%j leaves %j unused', (text, expected) => {
  const exporter = file('src/x.ts', 'export const a = 1;\nexport interface B {}\nfunction d(): void {}\nexport { d as c };\n');
  expect(unusedExports([exporter], [exporter, file('src/z.ts', text)]).map(({ name }) => name)).toEqual(expected);
});
