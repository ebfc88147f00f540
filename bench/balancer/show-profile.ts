import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/**
 * Prints the functions with the most time in the CPU profiles of a folder, from `run.ts --cpu-prof DIR`. Argument: the
 * folder.
 */
interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  /** µs since the previous sample. */
  readonly timeDeltas: readonly number[];
}

const topFunctions = 30;

function show(path: string): void {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node.js writes it
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(path, 'utf8')) as Profile;
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)] as const));
  const micros = new Map<string, number>();
  samples.forEach((id, index) => {
    const name = names.get(id) ?? '';
    micros.set(name, (micros.get(name) ?? 0) + (timeDeltas[index] ?? 0));
  });
  micros.delete('(idle)');
  const busy = [...micros.values()].reduce((sum, own) => sum + own, 0);
  console.log(`${basename(path)}: busy for ${(busy / 1e6).toFixed(1)} s; share of it by function, without what it called`);
  const ranked = [...micros].toSorted(([, a], [, b]) => b - a).slice(0, topFunctions);
  for (const [name, own] of ranked) console.log(`${((100 * own) / busy).toFixed(1).padStart(6)} %  ${name}`);
}

/** `lineNumber` counts from 0. */
function nameOf({ functionName, url, lineNumber }: Profile['nodes'][number]['callFrame']): string {
  const position = url === '' ? '' : `  ${url.replace(/^.*\/src\//, 'src/')}:${lineNumber + 1}`;
  return `${functionName === '' ? '(anonymous)' : functionName}${position}`;
}

for (const file of globSync('*.cpuprofile', { cwd: process.argv[2] ?? '.' })) show(join(process.argv[2] ?? '.', file));
