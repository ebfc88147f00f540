import { parseArgs } from 'node:util';
import { writeFileSync } from 'node:fs';
import { envVar } from '../src/shared/env.ts';
import { systemClock } from '../src/shared/clock.ts';
import { run, type FuzzResult } from '../test/fuzz/run.ts';

/**
 * Compares the HTTP/1.1 engine with `node:http` on made-up bytes: `npm run fuzz -- [--minutes N] [--seed S] [--cases N]`.
 * Ends with 1 and the smallest case when they disagree. The same seed makes the same cases.
 */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 32)) },
    cases: { type: 'string', default: 'Infinity' },
  },
});

const clock = systemClock;
const seed = Number(values.seed);
const startedAt = clock.monotonic();
const endsAt = startedAt + Number(values.minutes) * 60_000;
const result = await run(seed, (cases) => cases >= Number(values.cases) || clock.monotonic() >= endsAt);
tell(result, (clock.monotonic() - startedAt) / 1_000);
report(result.finding === undefined);
// Connections that were cut short may still wait for something.
process.exit(result.finding === undefined ? 0 : 1);

function tell({ cases, refused, known, finding }: FuzzResult, seconds: number): void {
  console.log(
    `seed ${seed}: ${cases} cases in ${seconds.toFixed(1)} s (${Math.round(cases / seconds)} per second), ${refused} refused by ours`,
  );
  for (const [name, count] of known) console.log(`  known difference, ${count} times: ${name}`);
  if (finding === undefined) return;
  console.log(`they disagree: ${finding.disagreement}`);
  console.log(`the smallest case that shows it: ${JSON.stringify(finding.smallest)}`);
  console.log(`the case that it was found with: npm run fuzz -- --seed ${finding.seed} --cases 1`);
}

/** For what adds up results: one test, in the form in which vitest reports its own. */
function report(isPassed: boolean): void {
  const path = envVar('SVC_TEST_REPORT');
  if (path !== undefined) {
    writeFileSync(path, JSON.stringify({ numPassedTests: isPassed ? 1 : 0, numFailedTests: isPassed ? 0 : 1, testResults: [] }));
  }
}
