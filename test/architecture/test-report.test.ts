import { expect, test } from 'vitest';
import { passedTests, summarizeTests } from '../../scripts/test-report.ts';

const long = Array.from({ length: 20 }, (_, line) => `line ${line}`).join('\n');

test('failed tests are named with their message but no stack; skipped ones are named', () => {
  const passed = { fullName: 'one that passed', status: 'passed', failureMessages: [] };
  const report = {
    testResults: [
      {
        name: '/tmp/tmp.1/svc/src/shared/a.test.ts',
        status: 'failed',
        message: '',
        assertionResults: [
          passed,
          { fullName: 'group one that failed', status: 'failed', failureMessages: ['Error: no\n\nbut yes\n    at /tmp/a.ts:1:2'] },
          { fullName: 'another', status: 'failed', failureMessages: [long] },
          { fullName: 'left out', status: 'skipped' },
          { fullName: 'one that crashed', status: 'pending', failureMessages: [] },
        ],
      },
      { name: '/w/test/e2e/b.test.ts', status: 'failed', message: 'Cannot find module', assertionResults: [] },
      { name: '/w/test/e2e/c.test.ts', status: 'passed', message: '', assertionResults: [passed] },
    ],
  };
  expect(summarizeTests('checks', report, new Set())).toEqual({
    failed: [
      'checks: src/shared/a.test.ts > group one that failed',
      '    Error: no',
      '    but yes',
      'checks: src/shared/a.test.ts > another',
      ...Array.from({ length: 6 }, (_, line) => `    line ${line}`),
      'checks: src/shared/a.test.ts > one that crashed',
      '    did not come to its end',
      'checks: test/e2e/b.test.ts',
      '    Cannot find module',
    ],
    skipped: ['checks: src/shared/a.test.ts > left out'],
  });
});

/** A file with one test. */
const file = (path: string, status: string) => ({
  name: path,
  status: 'passed',
  message: '',
  assertionResults: [{ fullName: 'one', status }],
});

test('a test that passed in any suite does not count as skipped', () => {
  const name = 'src/spec/a.process.test.ts';
  const asRoot = { testResults: [file(`/w/${name}`, 'skipped')] };
  const asUser = { testResults: [file(`/tmp/tmp.1/svc/${name}`, 'passed')] };
  expect(summarizeTests('checks', asRoot, new Set(passedTests(asUser))).skipped).toEqual([]);
  expect(summarizeTests('checks', asRoot, new Set(passedTests(asRoot))).skipped).toEqual([`checks: ${name} > one`]);
});
