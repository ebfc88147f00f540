import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { maskSource } from './mask-source.ts';

/** One import, export-from or `import()` of a module. */
export interface Import {
  readonly specifier: string;
  readonly line: number;
  /** `type`: erased at run time. `dynamic`: loaded when the code reaches it. */
  readonly kind: 'static' | 'type' | 'dynamic';
  /** Path from the root of the checkout, for modules of this project. */
  readonly file: string | undefined;
  /** Name of the package, for packages. */
  readonly packageName: string | undefined;
}

/** One module of the project. */
export interface SourceFile {
  /** From the root of the checkout, with slashes. */
  readonly path: string;
  readonly text: string;
  readonly codeOnly: string;
  readonly imports: readonly Import[];
}

const importPattern = /(?:^|[;}\n])\s*(import|export)\s+(type\s+)?(?:[\w\s{},*$]*?\sfrom\s+)?(['"])([^'"\n]+)\3/g;
const dynamicPattern = /\bimport\(\s*(['"])([^'"\n]+)\1\s*\)/g;

/** The line number, from 1, of an offset. */
export function lineOf(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

function packageOf(specifier: string): string | undefined {
  if (specifier.startsWith('.') || specifier.startsWith('node:')) return undefined;
  const parts = specifier.split('/');
  return specifier.startsWith('@') ? parts.slice(0, 2).join('/') : parts[0];
}

function readImports(path: string, withoutComments: string, codeOnly: string): readonly Import[] {
  const found: Import[] = [];
  const add = (kind: Import['kind'], specifier: string, offset: number): void => {
    const file = specifier.startsWith('.') ? normalize(join(dirname(path), specifier)) : undefined;
    found.push({ specifier, kind, line: lineOf(withoutComments, offset), file, packageName: packageOf(specifier) });
  };
  for (const match of withoutComments.matchAll(importPattern)) {
    const [whole, keyword = '', type, , specifier = ''] = match;
    const offset = match.index + whole.indexOf(keyword);
    // An import inside a string, such as a generated script, is skipped.
    if (!codeOnly.startsWith(keyword, offset)) continue;
    add(type === undefined ? 'static' : 'type', specifier, offset);
  }
  for (const match of withoutComments.matchAll(dynamicPattern)) {
    if (codeOnly.startsWith('import', match.index)) add('dynamic', match[2] ?? '', match.index);
  }
  return found;
}

/** Reads modules by pattern, relative to the root of the checkout. */
export function readSources(...patterns: readonly string[]): readonly SourceFile[] {
  return patterns
    .flatMap((pattern) => globSync(pattern))
    .toSorted()
    .map((path) => {
      const text = readFileSync(path, 'utf8');
      const { withoutComments, codeOnly } = maskSource(text);
      return { path, text, codeOnly, imports: readImports(path, withoutComments, codeOnly) };
    });
}

const isTest = (path: string): boolean => path.endsWith('.test.ts');

/** All modules below src/, including tests. */
export const allSources: readonly SourceFile[] = readSources('src/**/*.ts');

/** The modules that make up the product. */
export const productSources: readonly SourceFile[] = allSources.filter(({ path }) => !isTest(path));

/** A module of the product by its path. */
export const sourceByPath: ReadonlyMap<string, SourceFile> = new Map(productSources.map((source) => [source.path, source]));

/** Returns all project modules that `entry` loads statically, and the packages and built-in modules they load. */
export function staticallyLoaded(entry: string): { readonly files: ReadonlySet<string>; readonly packages: ReadonlySet<string> } {
  const files = new Set<string>();
  const packages = new Set<string>();
  const queue = [entry];
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (files.has(path)) continue;
    files.add(path);
    for (const { kind, file, specifier } of sourceByPath.get(path)?.imports ?? []) {
      if (kind !== 'static') continue;
      if (file === undefined) packages.add(specifier);
      else queue.push(file);
    }
  }
  return { files, packages };
}
