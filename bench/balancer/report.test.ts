import { expect, test } from 'vitest';
import { barsMarkdown } from './bars.ts';
import { sectionMarkdown } from './report.ts';
import type { Section } from './section.ts';

const section: Section = {
  title: 'Small GET',
  metrics: [
    { key: 'perSecond', title: 'requests/s', digits: 0 },
    { key: 'cpuMicros', title: 'CPU µs/request', digits: 1, isCompared: true },
  ],
  samples: new Map([
    ['direct', [{ perSecond: 9, cpuMicros: Number.NaN }]],
    ['svc', [1, 2, 3].map((factor) => ({ perSecond: 1_000 * factor, cpuMicros: 10 * factor }))],
    ['haproxy', [1, 2, 3].map((factor) => ({ perSecond: 2_000 * factor, cpuMicros: 10 }))],
  ]),
};

test('a section shows medians and paired ratios with spread, and blanks for missing figures', () => {
  expect(sectionMarkdown(section).split('\n')).toEqual([
    '## Small GET',
    '',
    '|  | requests/s | CPU µs/request | : haproxy |',
    '|---|---:|---:|---:|',
    '| direct | 9 |  |  |',
    '| svc | 2000 | 20.0 | 2.00 (1.00..3.00) |',
    '| haproxy | 4000 | 10.0 | 1 |',
  ]);
});

test('a bar compares the paired ratio, or is omitted without its workload or yardstick', () => {
  expect(
    barsMarkdown(new Map([['get', section]]))
      .split('\n')
      .slice(2),
  ).toEqual(['| CPU per small GET : HAProxy | ≤ 1.5 | 2.00 | missed |']);
  const alone = { ...section, samples: new Map([['svc', section.samples.get('svc') ?? []]]) };
  expect(barsMarkdown(new Map([['get', alone]])).split('\n')).toHaveLength(2);
});
