import { writeFileSync } from 'node:fs';
import { firstByteDistributions, lognormal, simulateCanary, type CanaryTraffic } from '../../test/support/canary-traffic.ts';

// Simulates canaries: how often equal versions are rolled back, and how soon bad ones are. Writes RESULTS.md beside it.
// `node bench/canary/run.ts [runs per bad version] [runs per case of equal versions]`
const runs = Number(process.argv[2] ?? 400);
const equalRunsPerCase = Number(process.argv[3] ?? 5);
const lines: string[] = [];
const print = (line: string): void => {
  lines.push(line);
  process.stdout.write(`${line}\n`);
};

/** The seconds until the verdict, in order; Infinity for runs without one. */
const foundAt = (traffic: CanaryTraffic, count: number, firstSeed: number): readonly number[] =>
  Array.from({ length: count }, (_, run) => simulateCanary(traffic, firstSeed + run).foundAt ?? Infinity).toSorted((a, b) => a - b);

const steady = { requestsPerSecond: 20, share: 0.05, firstByte: lognormal(100, 1), errorShare: 0, seconds: 300 };

const llm = firstByteDistributions['LLM, 0.2 to 30 s'] ?? steady.firstByte;
const long = firstByteDistributions['3 % wait 30 to 120 s'] ?? steady.firstByte;

print('# Canaries: simulated verdicts\n');
print(`Written by \`node bench/canary/run.ts ${runs} ${equalRunsPerCase}\`; the seeds are fixed. Without other words a case has`);
print('20 requests/s, a share of 5 %, a lognormal time to first byte (median 100 ms, sigma 1) and no errors. The judge is');
print('called every second.\n');
print(`| ${runs} runs each | found within 60 s | median | 95th percentile | worst |\n|---|---|---|---|---|`);
const bad: readonly (readonly [string, CanaryTraffic])[] = [
  ['10 % errors, old 0', { ...steady, next: { errorShare: 0.1 } }],
  ['10 % errors, old 0.1 %', { ...steady, errorShare: 0.001, next: { errorShare: 0.1 } }],
  ['10 % errors, old 0.5 %', { ...steady, errorShare: 0.005, next: { errorShare: 0.1 } }],
  ['10 % errors, old 0.5 %, share 25 %', { ...steady, share: 0.25, errorShare: 0.005, next: { errorShare: 0.1 } }],
  ['10 % errors, old 0.5 %, share 50 %', { ...steady, share: 0.5, errorShare: 0.005, next: { errorShare: 0.1 } }],
  ['10 % errors after 30 good minutes, old 0', { ...steady, seconds: 2400, next: { errorShare: 0.1, badFromSecond: 1800 } }],
  ['30 % errors, old 2 %', { ...steady, errorShare: 0.02, next: { errorShare: 0.3 } }],
  ['100 % errors, old 0', { ...steady, next: { errorShare: 1 } }],
  ['100 % errors, old 10 %', { ...steady, errorShare: 0.1, next: { errorShare: 1 } }],
  ['100 % errors, share 50 %', { ...steady, share: 0.5, next: { errorShare: 1 } }],
  ['100 % errors, 5 requests/s', { ...steady, requestsPerSecond: 5, next: { errorShare: 1 } }],
  ...Object.entries(firstByteDistributions).map(
    ([name, firstByte]) => [`3 × first byte, ${name}`, { ...steady, firstByte, next: { firstByteFactor: 3 } }] as const,
  ),
  ['3 × first byte, lognormal 1, share 50 %', { ...steady, share: 0.5, next: { firstByteFactor: 3 } }],
  ['3 × first byte, lognormal 1, 200 requests/s', { ...steady, requestsPerSecond: 200, next: { firstByteFactor: 3 } }],
  ['100 % hang, lognormal 1', { ...steady, next: { hangShare: 1 } }],
  ['100 % hang, lognormal 1, share 50 %', { ...steady, share: 0.5, next: { hangShare: 1 } }],
  ['100 % hang, LLM, 0.2 to 30 s', { ...steady, firstByte: llm, next: { hangShare: 1 } }],
  ['20 % hang, lognormal 1', { ...steady, next: { hangShare: 0.2 } }],
  ['20 % hang, LLM, 0.2 to 30 s', { ...steady, firstByte: llm, next: { hangShare: 0.2 } }],
  ['20 % hang, 3 % wait 30 to 120 s', { ...steady, firstByte: long, next: { hangShare: 0.2 } }],
  ['20 % hang, share 25 %', { ...steady, share: 0.25, next: { hangShare: 0.2 } }],
  ['1.5 × first byte, lognormal 0.3', { ...steady, firstByte: lognormal(100, 0.3), next: { firstByteFactor: 1.5 } }],
];
for (const [name, traffic] of bad) {
  const from = traffic.next?.badFromSecond ?? 0;
  const seconds = foundAt(traffic, runs, 1).map((second) => second - from);
  const at = (share: number): string => `${seconds[Math.ceil(share * runs) - 1]} s`.replace('Infinity s', 'not found');
  const inTime = seconds.filter((second) => second <= 60).length / runs;
  print(`| ${name} | ${(inTime * 100).toFixed(1)} % | ${at(0.5)} | ${at(0.95)} | ${at(1)} |`);
}

print('\n| equal versions, 10 minutes each | runs | false rollbacks |\n|---|---|---|');
let [all, wrong] = [0, 0];
for (const [name, firstByte] of Object.entries(firstByteDistributions))
  for (const bursts of [false, true]) {
    let [count, worse] = [0, 0];
    for (const requestsPerSecond of [5, 20, 200])
      for (const errorShare of [0, 0.001, 0.02, 0.1])
        for (const share of [0.05, 0.25, 0.5]) {
          const traffic = { requestsPerSecond, share, firstByte, errorShare, bursts, seconds: 600 };
          const found = foundAt(traffic, equalRunsPerCase, all * 7919);
          count += found.length;
          worse += found.filter(Number.isFinite).length;
          all += found.length;
        }
    wrong += worse;
    print(`| ${name}${bursts ? ', bursts' : ''} | ${count} | ${worse} |`);
  }
const threeHours = { requestsPerSecond: 5, share: 0.25, firstByte: lognormal(100, 2), errorShare: 0.02, seconds: 10_800 };
const longRuns = equalRunsPerCase * 8;
const inThreeHours = foundAt(threeHours, longRuns, 5).filter(Number.isFinite).length;
print(`| lognormal 2, 5 requests/s, 2 % errors, share 25 %, 3 hours | ${longRuns} | ${inThreeHours} |`);
print(`| all of 10 minutes | ${all} | ${wrong} (${((100 * wrong) / all).toFixed(2)} %) |`);

print('\nEach of 20 equal replicas is bad on its own for 10 s, 10 % of its time. The canary has 5 % (one replica) or more.\n');
print('| spells of single replicas, 10 minutes each | runs | false rollbacks |\n|---|---|---|');
const slow = { replicas: 20, firstByteFactor: 3 };
const narrow = lognormal(100, 0.3);
const spells: readonly (readonly [string, CanaryTraffic])[] = [
  ['3 × first byte, lognormal 0.3', { ...steady, firstByte: narrow, spells: slow }],
  ['3 × first byte, lognormal 1', { ...steady, spells: slow }],
  ['3 × first byte, lognormal 0.3, 60 requests/s', { ...steady, firstByte: narrow, requestsPerSecond: 60, spells: slow }],
  ['3 × first byte, lognormal 1, 200 requests/s', { ...steady, requestsPerSecond: 200, spells: slow }],
  ['3 × first byte, lognormal 0.3, share 25 %', { ...steady, firstByte: narrow, share: 0.25, spells: slow }],
  ['100 × first byte, lognormal 1', { ...steady, spells: { replicas: 20, firstByteFactor: 100 } }],
  ['20 % errors', { ...steady, spells: { replicas: 20, errorShare: 0.2 } }],
];
for (const [name, traffic] of spells) {
  const worse = foundAt({ ...traffic, seconds: 600 }, runs, 1).filter(Number.isFinite).length;
  print(`| ${name} | ${runs} | ${worse} (${((100 * worse) / runs).toFixed(1)} %) |`);
}
writeFileSync(new URL('RESULTS.md', import.meta.url), `${lines.join('\n')}\n`);
