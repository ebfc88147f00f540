import { expect, test } from 'vitest';
import { mergeMetrics } from './edge-proxy-reports.ts';

const text = (total: number): string =>
  [
    '# HELP svc_requests_total Requests.',
    '# TYPE svc_requests_total counter',
    `svc_requests_total ${total}`,
    '# HELP svc_seconds Time.',
    '# TYPE svc_seconds histogram',
    `svc_seconds_bucket{le="0.1",replica="1"} ${total}`,
    `svc_seconds_count{replica="1"} ${total}`,
    '',
  ].join('\n');

test("each family appears once and each sample carries its balancer's label", () => {
  expect(
    mergeMetrics([
      { member: 'a', text: text(1) },
      { member: 'b', text: text(2) },
    ]),
  ).toBe(`# HELP svc_requests_total Requests.
# TYPE svc_requests_total counter
svc_requests_total{balancer="a"} 1
svc_requests_total{balancer="b"} 2
# HELP svc_seconds Time.
# TYPE svc_seconds histogram
svc_seconds_bucket{balancer="a",le="0.1",replica="1"} 1
svc_seconds_count{balancer="a",replica="1"} 1
svc_seconds_bucket{balancer="b",le="0.1",replica="1"} 2
svc_seconds_count{balancer="b",replica="1"} 2
`);
});

test('without balancers there are no metrics', () => {
  expect(mergeMetrics([])).toBe('');
});
