import { writeFileSync } from 'node:fs';
import { arch, cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { catalogOffers } from '../../src/catalog/catalog-offers.ts';
import type { PriceTable } from '../../src/catalog/price-table.ts';
import { PriceTables } from '../../src/catalog/price-tables.ts';
import { orderCandidates } from '../../src/domain/placement/rank.ts';
import type { Resources } from '../../src/domain/task.ts';
import { someResources } from '../../test/support/builders.ts';

/** Measures the time from a table of this many machines, half of which satisfy the request, to the ordered offers. */
const machines = 10_000;
const rounds = 200;

const tables = new PriceTables('/nowhere');
const [table, disks] = [await tables.builtIn('aws'), await tables.disks('aws')];
if (table === undefined) throw new Error('There is no table of prices of aws.');

/** Repeats the table under other names until it has `machines` machines in regions. */
function grown({ types, ...facts }: PriceTable): PriceTable {
  const single = types.flatMap((type) => type.regions.map((price) => ({ ...type, regions: [price] })));
  const copies = Array.from({ length: Math.ceil(machines / single.length) }, (_, copy) =>
    single.map((type) => ({ ...type, name: `${type.name}-${copy}` })),
  );
  return { ...facts, types: copies.flat().slice(0, machines) };
}

const workloads: readonly (readonly [name: string, resources: Resources, explain: boolean])[] = [
  ['half of them satisfy', someResources({ cpus: { value: 2, atLeast: true }, memory: { value: 1, atLeast: true } }), false],
  ['one GPU of a kind', someResources({ accelerator: { name: 'L4', count: 1 } }), false],
  ['every reason against the others', someResources({ accelerator: { name: 'L4', count: 1 } }), true],
  ['none satisfies, and why', someResources({ cpus: { value: 1_000, atLeast: true } }), false],
];

const all = grown(table);
const facts = { order: 'any', refusals: [], starts: [], occupied: [], now: 0 } as const;

function once(resources: Resources, explain: boolean): { readonly ms: number; readonly offers: number } {
  const began = performance.now();
  const { offers } = catalogOffers(all, resources, { disks, explain });
  const ordered = orderCandidates(
    offers.map((offer) => ({ offer, alternative: 0 })),
    facts,
  );
  return { ms: performance.now() - began, offers: ordered.length };
}

const rows = workloads.map(([name, resources, explain]) => {
  const first = once(resources, explain);
  const times = Array.from({ length: rounds }, () => once(resources, explain).ms).toSorted((a, b) => a - b);
  const at = (part: number): string => (times[Math.floor((times.length - 1) * part)] ?? 0).toFixed(1);
  return `| ${name} | ${first.offers} | ${first.ms.toFixed(1)} | ${at(0.5)} | ${at(0.99)} |`;
});

const text = [
  `# From ${machines} machines of price tables to offers in order`,
  'Written by `npm run bench:offers -- --write`: matched with `resources`, disk added, sorted by price, ranked by `src/domain/placement/`. The aim is 50 ms. The first row’s first time is that of code that was never run before.',
  [
    `* ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, Node.js ${process.version}`,
    `* ${cpus().length} cores of ${cpus()[0]?.model ?? 'an unknown CPU'} (${arch()}), load before: ${loadavg()[0]?.toFixed(1)}`,
  ].join('\n'),
  ['| Resources | offers | first, ms | median, ms | 99 %, ms |', '|---|---:|---:|---:|---:|', ...rows].join('\n'),
].join('\n\n');
console.log(text);
if (process.argv.includes('--write')) writeFileSync(join(import.meta.dirname, 'RESULTS.md'), `${text}\n`);
