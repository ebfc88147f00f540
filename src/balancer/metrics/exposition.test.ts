import { expect, test } from 'vitest';
import { formatFor, renderMetrics } from './exposition.ts';
import { metricTable } from './metric-table.ts';
import { Samples } from './samples.ts';

function someSamples(): Samples {
  const samples = new Samples();
  samples.add('requests', 3, { code: '200', replica: '1' });
  samples.add('replicaInfo', 1, { replica: '1', place: 'a"b\\c\nd' });
  samples.addDistribution('replicaFirstByte', [2], 0.1 + 0.2, { replica: '1' });
  samples.addDistribution('threadDelay', [4, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2], 7, { thread: '0' });
  return samples;
}

test('the text format is valid for Prometheus', () => {
  expect(renderMetrics(someSamples(), 'text').split('\n')).toEqual([
    '# HELP svc_balancer_requests_total Requests that ended, by the status that the client received and the replica of the last attempt.',
    '# TYPE svc_balancer_requests_total counter',
    'svc_balancer_requests_total{code="200",replica="1"} 3',
    expect.stringMatching(/^# HELP svc_balancer_replica_time_to_first_byte_seconds /),
    '# TYPE svc_balancer_replica_time_to_first_byte_seconds summary',
    'svc_balancer_replica_time_to_first_byte_seconds_sum{replica="1"} 0.3',
    'svc_balancer_replica_time_to_first_byte_seconds_count{replica="1"} 2',
    expect.stringMatching(/^# HELP svc_balancer_replica_info /),
    '# TYPE svc_balancer_replica_info gauge',
    'svc_balancer_replica_info{replica="1",place="a\\"b\\\\c\\nd"} 1',
    expect.stringMatching(/^# HELP svc_balancer_event_loop_delay_seconds /),
    '# TYPE svc_balancer_event_loop_delay_seconds histogram',
    ...['0.001', '0.0025', '0.005', '0.01', '0.025', '0.05', '0.1', '0.25', '0.5'].map(
      (le) => `svc_balancer_event_loop_delay_seconds_bucket{thread="0",le="${le}"} 4`,
    ),
    'svc_balancer_event_loop_delay_seconds_bucket{thread="0",le="1.0"} 5',
    'svc_balancer_event_loop_delay_seconds_bucket{thread="0",le="2.5"} 5',
    'svc_balancer_event_loop_delay_seconds_bucket{thread="0",le="+Inf"} 7',
    'svc_balancer_event_loop_delay_seconds_sum{thread="0"} 7',
    'svc_balancer_event_loop_delay_seconds_count{thread="0"} 7',
    '',
  ]);
});

test('OpenMetrics drops the ending of counter names and ends with EOF', () => {
  const lines = renderMetrics(someSamples(), 'openmetrics').split('\n');
  expect(lines).toContain('# TYPE svc_balancer_requests counter');
  expect(lines).toContain('svc_balancer_requests_total{code="200",replica="1"} 3');
  expect(lines.slice(-2)).toEqual(['# EOF', '']);
});

test.for([
  [undefined, 'text'],
  ['*/*', 'text'],
  ['application/openmetrics-text; version=1.0.0', 'openmetrics'],
  // What Prometheus 2 and 3 send.
  [
    'application/openmetrics-text;version=1.0.0;q=0.75,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.25,*/*;q=0.1',
    'openmetrics',
  ],
  ['text/plain;q=1,application/openmetrics-text;q=0.5', 'text'],
  ['application/openmetrics-text;q=0', 'text'],
  ['application/openmetrics-text;q=x', 'text'],
] as const)('Accept: %s is answered with %s', ([accept, format]) => {
  expect(formatFor(accept)).toBe(format);
});

test('names are valid in both formats', () => {
  const families = Object.values(metricTable);
  expect(new Set(families.map(({ name }) => name)).size).toBe(families.length);
  for (const { name } of families) expect(name).toMatch(/^(?:svc_balancer|process)_[a-z_]*[a-z]$(?<!_(?:total|bucket|sum|count))/);
});
