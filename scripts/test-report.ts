import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/** The used fields of vitest's JSON report. */
export interface TestReport {
  readonly testResults: readonly TestFile[];
}

interface TestFile {
  /** Absolute path. */
  readonly name: string;
  readonly status: string;
  /** Why the file could not run; empty when it ran. */
  readonly message: string;
  readonly assertionResults: readonly TestResult[];
}

interface TestResult {
  readonly fullName: string;
  readonly status: string;
  /** Absent in reports of tests that passed. */
  readonly failureMessages?: readonly string[] | null;
}

/** Of a shown failure message: a diff of long texts would bury the other names. */
const mostLines = 6;
const mostCharacters = 300;

/** Lists a suite's failed tests with the beginning of their messages, and skipped tests that are not in `passed`. */
export function summarizeTests(
  suite: string,
  { testResults }: TestReport,
  passed: ReadonlySet<string>,
): { readonly failed: readonly string[]; readonly skipped: readonly string[] } {
  const failed: string[] = [];
  const skipped: string[] = [];
  for (const { name, status, message, assertionResults } of testResults) {
    const file = `${suite}: ${fromRoot(name)}`;
    for (const test of assertionResults) {
      const line = `${suite}: ${testName(name, test)}`;
      if (test.status === 'failed') failed.push(line, ...beginningOf(test.failureMessages?.[0] ?? ''));
      // The test's process crashed.
      else if (test.status === 'pending') failed.push(line, '    did not come to its end');
      else if (test.status !== 'passed' && !passed.has(testName(name, test))) skipped.push(line);
    }
    // For example a missing import, or a hook that threw.
    const isBroken = status === 'failed' && assertionResults.every((test) => test.status !== 'failed');
    if (isBroken) failed.push(file, ...beginningOf(message));
  }
  return { failed, skipped };
}

/** The names of the passed tests: a test that one user or suite skips may run in another one. */
export function passedTests({ testResults }: TestReport): readonly string[] {
  return testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.filter(({ status }) => status === 'passed').map((test) => testName(name, test)),
  );
}

const testName = (file: string, { fullName }: TestResult): string => `${fromRoot(file)} > ${fullName}`;

const fromRoot = (path: string): string => path.replace(/^.*?\/(?=(?:src|test|bench)\/)/, '');

function beginningOf(message: string): readonly string[] {
  const lines = message.split('\n').filter((line) => line.trim() !== '');
  const stackAt = lines.findIndex((line) => /^\s+at /.test(line));
  return lines.slice(0, Math.min(mostLines, stackAt < 0 ? mostLines : stackAt)).map((line) => `    ${line.slice(0, mostCharacters)}`);
}

/** A suite that crashed leaves an empty report or none. */
function readReport(path: string): TestReport {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- vitest's own format
    return JSON.parse(readFileSync(path, 'utf8')) as TestReport;
  } catch {
    return { testResults: [] };
  }
}

/** `node scripts/test-report.ts REPORT...`, named after their suites. Prints failed and skipped tests. */
if (import.meta.main) {
  const reports = process.argv.slice(2).map((path) => ({ suite: basename(path, '.json'), report: readReport(path) }));
  const passed = new Set(reports.flatMap(({ report }) => passedTests(report)));
  const all = reports.map(({ suite, report }) => summarizeTests(suite, report, passed));
  for (const [title, lines] of [
    ['Skipped', all.flatMap(({ skipped }) => skipped)],
    ['Failed', all.flatMap(({ failed }) => failed)],
  ] as const) {
    if (lines.length > 0) console.log([`=== ${title}`, ...lines].join('\n'));
  }
}
