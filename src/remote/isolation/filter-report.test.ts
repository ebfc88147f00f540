import { expect, test } from 'vitest';
import { describeFilter, filterRemedies } from './filter-report.ts';

test.each([
  [{ isolation: 'userns', arch: 'aarch64', hasPerl: true }, 'on (seccomp)', 0],
  [{ isolation: 'bwrap', arch: 'x86_64', hasPerl: false }, 'none: there is no Perl, which sets it', 1],
  [{ isolation: 'root', arch: 'riscv64', hasPerl: false }, 'none: it does not support the processor riscv64', 0],
  [{ isolation: 'none', arch: 'x86_64', hasPerl: false }, 'none: it needs an isolation', 0],
] as const)('the filter of %o is reported with its remedy', (facts, text, remedies) => {
  expect([describeFilter(facts), filterRemedies(facts).length]).toEqual([text, remedies]);
});
