import { dirname, join, normalize } from 'node:path';
import { lineOf, type SourceFile } from './source-tree.ts';

/** An exported name of a module. */
export interface ExportedName {
  readonly path: string;
  readonly line: number;
  readonly name: string;
}

const declaration = /^export (?:async )?(?:abstract )?(?:function\*?|const|let|class|interface|type) (\w+)/gm;
const exportList = /^export (?:type )?\{([^}]*)\}/gm;
const staticImport = /\b(?:import|export)\s+(?:type\s+)?(?:\{([^}]*)\}|\*\s+as\s+(\w+))\s+from\s+(['"])(\.[^'"\n]+)\3/g;
const dynamicImport = /\bimport\(\s*(['"])(\.[^'"\n]+)\1\s*\)/g;

/** Returns exported names that no other module imports. */
export function unusedExports(exporters: readonly SourceFile[], importers: readonly SourceFile[]): readonly ExportedName[] {
  const used = importedNames(importers);
  return exporters.flatMap(exportedNames).filter(({ path, name }) => !used.has(`${path}#${name}`));
}

function exportedNames({ path, codeOnly }: SourceFile): readonly ExportedName[] {
  const declared = [...codeOnly.matchAll(declaration)].map(({ 1: name = '', index }) => ({ name, index }));
  const listed = [...codeOnly.matchAll(exportList)].flatMap(({ 1: list = '', index }) =>
    readNames(list).map(({ outside }) => ({ name: outside, index })),
  );
  // The overloads of a function are one export.
  const indexOf = new Map([...declared, ...listed].map(({ name, index }) => [name, index]));
  return [...indexOf].map(([name, index]) => ({ path, line: lineOf(codeOnly, index), name }));
}

/**
 * Returns what modules import from others, as `path#name`. Includes programs in strings, because tests write them to
 * files.
 */
function importedNames(importers: readonly SourceFile[]): ReadonlySet<string> {
  const used = new Set<string>();
  for (const { path, text } of importers) {
    const add = (specifier: string, names: readonly string[]): void => {
      for (const name of names) used.add(`${normalize(join(dirname(path), specifier))}#${name}`);
    };
    for (const { 1: list, 2: namespace, 4: specifier = '' } of text.matchAll(staticImport)) {
      add(specifier, namespace === undefined ? readNames(list ?? '').map(({ inside }) => inside) : membersOf(namespace, text));
    }
    // A module loaded on demand may have its names used anywhere in the file.
    for (const { 2: specifier = '' } of text.matchAll(dynamicImport)) add(specifier, text.match(/\w+/g) ?? []);
  }
  return used;
}

/** Reads `a, type b as c`: the names inside and outside of the exporting module. */
function readNames(list: string): readonly { readonly inside: string; readonly outside: string }[] {
  return list.split(',').flatMap((item) => {
    const match = /^\s*(?:type\s+)?(\w+)(?:\s+as\s+(\w+))?\s*$/.exec(item);
    return match === null ? [] : [{ inside: match[1] ?? '', outside: match[2] ?? match[1] ?? '' }];
  });
}

function membersOf(namespace: string, text: string): readonly string[] {
  return [...text.matchAll(new RegExp(`\\b${namespace}\\.(\\w+)`, 'g'))].map(({ 1: name = '' }) => name);
}
