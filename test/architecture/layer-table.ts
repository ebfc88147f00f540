import { readFileSync } from 'node:fs';

/** One row of the layer table in ARCHITECTURE.md. */
export interface Layer {
  readonly folder: string;
  readonly mayImport: readonly string[];
  readonly packages: readonly string[];
  /** Whether it may use Node's own modules. When not, no module that it loads may either. */
  readonly usesNode: boolean;
}

const ticked = (cell: string): readonly string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);

/** Reads the table from the document, so that document and check cannot differ. */
export function readLayerTable(): readonly Layer[] {
  const section = readFileSync('ARCHITECTURE.md', 'utf8').split('\n## Layers')[1]?.split('\n## ')[0] ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  return rows.map((row) => {
    const [, folder = '', mayImport = '', packages = '', node = ''] = row.split('|');
    return {
      folder: ticked(folder)[0] ?? '',
      mayImport: ticked(mayImport),
      packages: ticked(packages),
      usesNode: node.trim() === 'yes',
    };
  });
}

/** Returns the row of a file: the one with the longest matching folder name. */
export function layerOf(path: string, table: readonly Layer[]): Layer | undefined {
  return table.filter(({ folder }) => path.startsWith(`src/${folder}/`)).toSorted((a, b) => b.folder.length - a.folder.length)[0];
}
