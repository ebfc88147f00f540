import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { simulateSearch, type Market, type SearchResult } from '../../test/support/search-simulation.ts';

const seeds = 20;

const markets: readonly (readonly [string, Omit<Market, 'seed' | 'replicas'>])[] = [
  ['70 % refuse, answers within 5 to 60 s', { kinds: 60, refusing: 0.7, answerMs: [5_000, 60_000], room: [64, 64] }],
  ['the same, room for 1 to 8 each', { kinds: 60, refusing: 0.7, answerMs: [5_000, 60_000], room: [1, 8] }],
  ['70 % refuse, answers within 1 to 4 s', { kinds: 60, refusing: 0.7, answerMs: [1_000, 4_000], room: [1, 8] }],
  ['90 % refuse, answers within 5 to 60 s', { kinds: 60, refusing: 0.9, answerMs: [5_000, 60_000], room: [64, 64] }],
  ['nothing refuses, answers within 5 to 60 s', { kinds: 60, refusing: 0, answerMs: [5_000, 60_000], room: [64, 64] }],
];

const at = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

const lines: string[] = [];
const print = (line: string): void => {
  lines.push(line);
  process.stdout.write(`${line}\n`);
};

for (const [title, market] of markets) {
  print(`\n### ${title}\n`);
  print('| Replicas | Time / oracle, mean | 9 of 10 within | worst | Price / oracle | Asks per replica | Given back per replica |');
  print('|---:|---:|---:|---:|---:|---:|---:|');
  for (const replicas of [1, 4, 16, 64]) {
    const results: SearchResult[] = [];
    for (let seed = 1; seed <= seeds; seed += 1) results.push(await simulateSearch({ ...market, replicas, seed }));
    const ratios = results.map(({ tookMs, oracleMs }) => tookMs / oracleMs).toSorted((a, b) => a - b);
    const cells = [
      mean(ratios).toFixed(2),
      at(ratios, 0.9).toFixed(2),
      at(ratios, 1).toFixed(2),
      mean(results.map(({ priceRatio }) => priceRatio)).toFixed(2),
      (mean(results.map(({ asks }) => asks)) / replicas).toFixed(1),
      (mean(results.map(({ surplus }) => surplus)) / replicas).toFixed(2),
    ];
    print(`| ${replicas} | ${cells.join(' | ')} |`);
  }
}
if (process.argv.includes('--write')) writeFileSync(join(import.meta.dirname, 'search-results.txt'), `${lines.join('\n')}\n`);
