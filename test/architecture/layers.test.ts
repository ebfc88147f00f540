import { expect, test } from 'vitest';
import { layerOf, readLayerTable } from './layer-table.ts';
import { productSources, sourceByPath, staticallyLoaded, type SourceFile } from './source-tree.ts';

const table = readLayerTable();

test('every folder of src/ has a row in the layer table of ARCHITECTURE.md', () => {
  expect(table.length).toBeGreaterThan(10);
  expect(productSources.filter(({ path }) => layerOf(path, table) === undefined).map(({ path }) => path)).toEqual([]);
});

test('imports follow the layer table', () => {
  expect(productSources.flatMap(layerViolations)).toEqual([]);
});

test('pure folders load no files, sockets, time or packages, even transitively', () => {
  const violations = productSources
    .filter(({ path }) => layerOf(path, table)?.usesNode === false)
    .flatMap(({ path }) => [...staticallyLoaded(path).packages].map((name) => `${path} loads ${name}: pass the data in instead`));
  expect(violations).toEqual([]);
});

test('every import of a project module names an existing file', () => {
  const missing = productSources.flatMap(({ path, imports }) =>
    imports.flatMap(({ file, line }) => (file === undefined || sourceByPath.has(file) ? [] : [`${path}:${line}: no ${file}`])),
  );
  expect(missing).toEqual([]);
});

test('there are no import cycles, not even of types', () => {
  const finished = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) cycles.push([...trail.slice(trail.indexOf(path)), path].join(' -> '));
    if (trail.includes(path) || finished.has(path)) return;
    for (const { file, kind } of sourceByPath.get(path)?.imports ?? []) {
      // A module loaded on demand, such as a command, may import the module that loads it.
      if (file === undefined || kind === 'dynamic') continue;
      visit(file, [...trail, path]);
    }
    finished.add(path);
  };
  for (const { path } of productSources) visit(path, []);
  expect(cycles).toEqual([]);
});

/** Code that cloud drivers share; it is no provider itself. */
const shared = 'vm';

test('no provider imports another provider, and only the registry loads providers', () => {
  const providerPath = /^src\/providers\/([^/]+)\//;
  const violations = productSources.flatMap(({ path, imports }) =>
    imports.flatMap(({ file, line }) => {
      const target = file === undefined ? undefined : providerPath.exec(file)?.[1];
      if (target === undefined || target === shared || target === providerPath.exec(path)?.[1] || path === 'src/providers/registry.ts')
        return [];
      return [`${path}:${line}: imports providers/${target}; go through providers/registry.ts`];
    }),
  );
  expect(violations).toEqual([]);
});

test('code shared by VM clouds names none of them, even in strings', () => {
  const clouds = productSources
    .flatMap(({ path }) => /^src\/providers\/(\w+)\/driver\.ts$/.exec(path)?.[1] ?? [])
    .filter((name) => name !== shared);
  expect(clouds).toContain('aws');
  const named = new RegExp(`^(?!\\s*(?:/\\*\\*|\\*|//)).*\\b(?:${clouds.join('|')})`, 'im');
  const violations = productSources.filter(({ path, text }) => path.startsWith(`src/providers/${shared}/`) && named.test(text));
  expect(violations.map(({ path }) => path)).toEqual([]);
});

function layerViolations({ path, imports }: SourceFile): readonly string[] {
  const layer = layerOf(path, table);
  if (layer === undefined) return [];
  return imports.flatMap(({ file, line, packageName, specifier }) => {
    const target = file === undefined ? undefined : layerOf(file, table)?.folder;
    if (file !== undefined && target !== layer.folder && (target === undefined || !layer.mayImport.includes(target))) {
      return [`${path}:${line}: ${layer.folder}/ must not import ${file}; see the layer table in ARCHITECTURE.md`];
    }
    if (packageName !== undefined && !layer.packages.includes(packageName)) {
      return [`${path}:${line}: ${layer.folder}/ must not use the package ${packageName}; see the layer table in ARCHITECTURE.md`];
    }
    if (specifier.startsWith('node:') && !layer.usesNode) {
      return [`${path}:${line}: ${layer.folder}/ is pure and must not import ${specifier}; pass the data or the time in`];
    }
    return [];
  });
}
