import { expect, test } from 'vitest';
import { aServiceSpec } from '../../test/support/builders.ts';
import { decideTarget } from './autoscale.ts';
import { type EngineLoad, engineLoadOf, readEngineMetrics } from './engine-metrics.ts';

test('series with requests of their own are summed, and the fullest cache counts', () => {
  const text = [
    '# TYPE vllm:num_requests_waiting gauge',
    'vllm:num_requests_waiting{engine="0",model_name="a\\"}, b"} 3.0',
    'vllm:num_requests_waiting{engine="1",model_name="a"} 4 1700000000000',
    'vllm:num_requests_waiting_by_reason{engine="0"} 99',
    'vllm:gpu_cache_usage_perc 0.9',
    'vllm:kv_cache_usage_perc{engine="0"} 0.25',
    'vllm:kv_cache_usage_perc{engine="1"} 5e-1',
  ].join('\r\n');
  expect(readEngineMetrics(text)).toEqual({ waiting: 7, cacheUsage: 0.5 });
});

test('ranks of one SGLang scheduler count once, and TGI reports no cache', () => {
  const ranks = [0, 1].flatMap((dp) => [0, 1].map((tp) => `sglang:num_queue_reqs{tp_rank="${tp}",dp_rank="${dp}"} 5`));
  expect(readEngineMetrics([...ranks, 'sglang:token_usage 0.1'].join('\n'))).toEqual({ waiting: 10, cacheUsage: 0.1 });
  expect(readEngineMetrics('tgi_queue_size 2')).toEqual({ waiting: 2, cacheUsage: undefined });
});

test.each([
  '',
  'tgi_queue_size NaN',
  'tgi_queue_size +Inf',
  'tgi_queue_size -1',
  'tgi_queue_size',
  'tgi_queue_size{a="1" 3',
  '<html>',
  'x'.repeat(1e6),
])('a body without a usable number is missing (%#)', (text) => expect(readEngineMetrics(text)).toBeUndefined());

test('an endless label is read in linear time', () => {
  expect(readEngineMetrics(`tgi_queue_size{a="${'\\"'.repeat(500_000)}`)).toBeUndefined();
});

test('an old reading is missing', () => {
  const reading = { waiting: 2, cacheUsage: 0.5, at: 0 };
  expect(engineLoadOf([reading, undefined], 20_000)).toEqual({ waiting: 2, cacheUsage: 0.5, measured: 1, missing: 1 });
  expect(engineLoadOf([reading], 20_001)).toEqual({ waiting: 0, cacheUsage: undefined, measured: 0, missing: 1 });
});

const idle = { recent: [0], ongoing: { minute: 0, moment: 0 }, inFlight: 0, queued: 0, readyReplicas: 3, coldStartSeconds: 1 };
const target = (autoscaler: 'concurrency' | 'forecast', engines: EngineLoad): number => {
  const targets = { targetOngoingRequestsPerReplica: 1, targetQpsPerReplica: 1, upscaleDelaySeconds: 0, downscaleDelaySeconds: 0 };
  const policy = { ...aServiceSpec().replicaPolicy, minReplicas: 1, maxReplicas: 20, autoscaler, ...targets };
  const load = { requestsInWindow: 0, busy: 0, fleet: { living: [], toCome: 1 }, isComplete: true, signals: { ...idle, engines } };
  return decideTarget({ target: 3, upCount: 0, downCount: 9 }, policy, load).target;
};

test.each(['concurrency', 'forecast'] as const)(
  '%s: saturated engines ask for one more replica, and missing metrics keep the number',
  (autoscaler) => {
    expect(target(autoscaler, { waiting: 15, cacheUsage: 0.8, measured: 3, missing: 0 })).toBe(1);
    expect(target(autoscaler, { waiting: 0, cacheUsage: 0.81, measured: 3, missing: 0 })).toBe(4);
    expect(target(autoscaler, { waiting: 16, cacheUsage: undefined, measured: 3, missing: 0 })).toBe(4);
    expect(target(autoscaler, { waiting: 0, cacheUsage: undefined, measured: 2, missing: 1 })).toBe(3);
    expect(target(autoscaler, { waiting: 15, cacheUsage: 1, measured: 2, missing: 1 })).toBe(3);
  },
);

test('the forecast counts requests that wait inside engines as queued', () => {
  expect(target('forecast', { waiting: 300, cacheUsage: 0, measured: 3, missing: 0 })).toBe(7);
});
