import { globSync, readFileSync } from 'node:fs';
import { parseAst } from 'rolldown/parseAst';
import { expect, test } from 'vitest';
import { lineOf } from './source-tree.ts';

/** A node of the ESTree; only the fields that this test reads. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value && 'start' in value;

function childrenOf(node: Node): readonly Node[] {
  return Object.entries(node).flatMap(([field, value]) => {
    // A property's name is no variable.
    if ((field === 'key' || field === 'property') && node['computed'] !== true) return [];
    return [value].flat().filter(isNode);
  });
}

const isFunction = ({ type }: Node): boolean => type === 'ArrowFunctionExpression' || type.startsWith('Function');

/** Returns the names that a pattern declares. */
function namesIn(pattern: Node): readonly string[] {
  return pattern.type === 'Identifier' ? [String(pattern['name'])] : childrenOf(pattern).flatMap(namesIn);
}

/** Whether a callback declares a parameter or variable of that name, which shadows the constant. */
function declares(node: Node, name: string): boolean {
  const { params, id } = node;
  const patterns = [...(Array.isArray(params) ? params : []), node.type === 'VariableDeclarator' ? id : undefined].filter(isNode);
  return patterns.some((pattern) => namesIn(pattern).includes(name)) || childrenOf(node).some((child) => declares(child, name));
}

/** Finds callbacks that use a constant declared after an `await`. A call before the declaration throws. */
function lateConstants(statements: readonly Node[]): readonly { readonly name: string; readonly start: number }[] {
  const constants = statements
    .filter(({ type, kind }) => type === 'VariableDeclaration' && kind !== 'var')
    .flatMap((declaration) => childrenOf(declaration))
    .flatMap((declarator) => (isNode(declarator['id']) ? namesIn(declarator['id']).map((name) => ({ name, end: declarator.end })) : []));
  const awaits: number[] = [];
  const uses: { readonly name: string; readonly start: number; readonly callback: Node }[] = [];
  const walk = (node: Node, callback: Node | undefined): void => {
    if (callback === undefined && (node.type === 'AwaitExpression' || (node.type === 'ForOfStatement' && node['await'] === true)))
      awaits.push(node.end);
    if (callback !== undefined && node.type === 'Identifier') uses.push({ name: String(node['name']), start: node.start, callback });
    const inner = callback ?? (isFunction(node) ? node : undefined);
    for (const child of childrenOf(node)) walk(child, inner);
  };
  for (const statement of statements) walk(statement, undefined);
  return uses.filter(
    ({ name, callback }) =>
      constants.some(
        ({ name: constant, end }) => constant === name && callback.end < end && awaits.some((at) => at > callback.start && at <= end),
      ) && !declares(callback, name),
  );
}

function allBlocks(node: Node): readonly (readonly Node[])[] {
  const { body } = node;
  const own = (node.type === 'BlockStatement' || node.type === 'Program') && Array.isArray(body) ? [body.filter(isNode)] : [];
  return [...own, ...childrenOf(node).flatMap(allBlocks)];
}

function lateConstantsOf(text: string): readonly string[] {
  const program: unknown = parseAst(text, { lang: 'ts' });
  if (!isNode(program)) throw new Error('the parser gave no program');
  return allBlocks(program).flatMap((statements) => lateConstants(statements).map(({ name, start }) => `${lineOf(text, start)} ${name}`));
}

test('a callback that can run before its constant is initialized is reported', () => {
  const text = `async function run(open: (on: () => void) => void) {
    open(() => thing.go());
    const memory = await load();
    const thing = make(memory);
  }`;
  expect(lateConstantsOf(text)).toEqual(['2 thing']);
  expect(lateConstantsOf(text.replace('await ', ''))).toEqual([]);
});

test('no callback uses a constant that is defined after an await', () => {
  const files = globSync('{src,scripts}/**/*.ts', { exclude: (path) => path.endsWith('.test.ts') });
  expect(files.length).toBeGreaterThan(300);
  const late = files.flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    return text.includes('await') ? lateConstantsOf(text).map((found) => `${file}:${found}`) : [];
  });
  // To fix a finding: await first, then construct the parts, and register callbacks last.
  expect(late).toEqual([]);
});
