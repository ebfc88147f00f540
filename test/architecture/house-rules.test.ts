import { expect, test } from 'vitest';
import { houseRules, type HouseRule } from './house-rules.ts';
import { allSources, lineOf, productSources, readSources, type SourceFile } from './source-tree.ts';

const isWithin = (path: string, paths: readonly string[]): boolean =>
  paths.some((prefix) => (prefix.endsWith('/') ? path.startsWith(`src/${prefix}`) : path === `src/${prefix}`));

function violations(rule: HouseRule, { path, codeOnly, imports }: SourceFile): readonly string[] {
  if (isWithin(path, rule.except) || (rule.within !== undefined && !isWithin(path, rule.within))) return [];
  const matches = rule.says === undefined ? [] : [...codeOnly.matchAll(new RegExp(rule.says, `g${rule.says.flags}`))];
  const imported = imports.filter(({ specifier, kind }) => kind !== 'type' && rule.imports?.test(specifier));
  return [
    ...matches.map((match) => `${path}:${lineOf(codeOnly, match.index)}: ${match[0].trim()}: ${rule.instead}`),
    ...imported.map(({ line, specifier }) => `${path}:${line}: ${specifier}: ${rule.instead}`),
  ];
}

const file = (codeOnly: string): SourceFile => ({ path: 'src/domain/x.ts', text: '', codeOnly, imports: [] });

test.for(houseRules)('$name', (rule) => {
  expect(productSources.flatMap((source) => violations(rule, source))).toEqual([]);
});

test.for<readonly [name: string, code: string]>([
  ['the environment has one reader', 'const home = process.env.HOME;'],
  ['time comes from a Clock', 'const now =\n  Date.now();'],
  ['time comes from a Clock', 'setTimeout(() => {}, 5);'],
  ['chance comes from shared/random.ts', 'Math.random()'],
  ['no shell sees an argument', 'spawn(a, b, { shell: true })'],
  ['decisions wait for nothing', 'export async function decide() {}'],
  ['dynamic imports are literal, so that a bundle finds them', 'await import(path)'],
])('%s: finds %s', ([name, code]) => {
  expect(houseRules.filter((rule) => rule.name === name).flatMap((rule) => violations(rule, file(code)))).toHaveLength(1);
});

test('literal dynamic imports, dates of a given time and foreign methods break no rule', () => {
  const fine = file("const a = import('      '); const b = new Date(at); socket.setTimeout(5);");
  expect(houseRules.flatMap((rule) => violations(rule, fine))).toEqual([]);
});

test('random numbers in tests have a seed', () => {
  const sources = [...allSources, ...readSources('test/**/*.ts', 'bench/**/*.ts')];
  const unseeded = sources.filter(({ codeOnly }) => codeOnly.includes('Math.random')).map(({ path }) => path);
  expect(unseeded).toEqual(['src/shared/random.ts']);
});

test('files stay below 400 lines', () => {
  const long = productSources.map(({ path, text }) => ({ path, lines: text.split('\n').length - 1 })).filter(({ lines }) => lines > 400);
  expect(long).toEqual([]);
});

test('every export has a sentence of documentation', () => {
  const silent = productSources.flatMap(({ path, text }) => undocumentedExports(text).map((found) => `${path}:${found}`));
  expect(silent).toEqual([]);
});

/**
 * `export type X = (typeof xs)[number]` right below a documented `xs` needs no sentence of its own. Neither do one-line
 * exports in a block under one comment, nor the overloads of a function after the first.
 */
function undocumentedExports(text: string): readonly string[] {
  const lines = text.split('\n');
  let documented = false;
  return lines.flatMap((line, index) => {
    const above = lines[index - 1]?.trimEnd() ?? '';
    const name = exportedName(line);
    documented = above.endsWith('*/') || (documented && exportedName(above) !== undefined);
    if (name === undefined || documented || /^export type .*\b(?:typeof|z\.(?:output|input))\b/.test(line)) return [];
    return [`${index + 1}: ${name} has no doc comment`];
  });
}

function exportedName(line: string): string | undefined {
  return /^export (?:async )?(?:abstract )?(?:function\*?|const|class|interface|type|let) (\w+)/.exec(line)?.[1];
}
