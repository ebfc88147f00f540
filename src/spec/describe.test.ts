import { expect, test } from 'vitest';
import { parseText, sourceOf } from '../../test/support/task-text.ts';
import { describeService } from './describe-service.ts';
import { describeAutoscaling, describeResources } from './describe.ts';
import { serviceOf } from './parse-task.ts';

const describe = (
  source: string,
  secrets: Readonly<Record<string, string>> = {},
  envs: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> => {
  const task = parseText(source, { secrets, envs });
  return Object.fromEntries(describeService({ ...task, service: serviceOf(task, 'x') }, sourceOf(source, { secrets, envs })));
};

test('describes a plain service', () => {
  expect(describe('service: {ports: 80, replicas: 2}')).toEqual({
    'Readiness probe method': 'GET /',
    'Readiness initial delay seconds': '1200',
    'Readiness probe timeout seconds': '15',
    'Replica autoscaling policy': 'Fixed 2 replicas',
    'TLS certificates': 'No TLS',
    'Spot policy': 'No spot policy',
    'Load balancing policy': 'least_load',
  });
});

test('describes a service with all settings', () => {
  const source = `
resources: {ports: 80, use_spot: true}
service:
  readiness_probe: {path: /p, post_data: {a: 1}, headers: {A: b}}
  replica_policy: {min_replicas: 1, max_replicas: 3, target_qps_per_replica: 2.5, num_overprovision: 1, base_ondemand_fallback_replicas: 1, spot_placer: dynamic_fallback}
  load_balancing_policy: round_robin
  tls: {keyfile: k, certfile: c}
`;
  expect(describe(source)).toMatchObject({
    'Readiness probe method': 'POST /p {"a":1} with custom headers',
    'Replica autoscaling policy': 'Autoscaling from 1 to 3 replicas with 1 overprovisioned replica (target QPS per replica: 2.5)',
    'TLS certificates': 'Keyfile: /project/k, certfile: /project/c',
    'Spot policy': 'Dynamic spot placement with 1 base on-demand replica',
    'Load balancing policy': 'round_robin',
  });
});

test('describes a gRPC service', () => {
  expect(describe('service: {ports: 80, protocol: h2c, readiness_probe: /grpc.health.v1.Health/Check}')).toMatchObject({
    'Readiness probe method': 'gRPC health check /grpc.health.v1.Health/Check',
    'Protocol of replicas': 'h2c',
  });
});

test.each([
  ['dynamic_ondemand_fallback: true', 'Dynamic on-demand fallback'],
  ['dynamic_ondemand_fallback: true, spot_placer: dynamic_fallback', 'SpotHedge'],
  ['spot_placer: hedge', 'Hedge by the history of zones'],
  ['base_ondemand_fallback_replicas: 2', 'Static spot mixture with 2 base on-demand replicas'],
])('spot policy %s', (field, words) => {
  expect(describe(`resources: {ports: 80, use_spot: true}\nservice: {replica_policy: {min_replicas: 2, ${field}}}`)['Spot policy']).toBe(
    words,
  );
});

test.each([
  ['a path', 'service: {ports: 80, readiness_probe: /$KEY/$NAME}', 'GET /$KEY/$NAME'],
  ['a body', 'service: {ports: 80, readiness_probe: {path: "/${KEY}", post_data: {key: $KEY, n: 1}}}', 'POST /${KEY} {"key":"$KEY","n":1}'],
  ['a body in text', `service: {ports: 80, readiness_probe: {path: /, post_data: '{"key": "$KEY"}'}}`, 'POST / {"key": "$KEY"}'],
])('a variable in %s is shown by name, however short its value', (_about, source, expected) => {
  expect(describe(source, { KEY: 'q7' }, { NAME: 'x' })['Readiness probe method']).toBe(expected);
});

test('a variable in TLS paths is shown by name; other paths are shown whole', () => {
  const source = 'service: {ports: 80, tls: {keyfile: $KEY/k, certfile: c}}';
  expect(describe(source, { KEY: 'q7' })['TLS certificates']).toBe('Keyfile: $KEY/k, certfile: /project/c');
});

test('a secret that the file repeats is masked', () => {
  const source = 'service: {ports: 80, readiness_probe: /hunter2}\nsecrets: {KEY: hunter2}';
  expect(describe(source)['Readiness probe method']).toBe('GET /***');
});

test.each([
  ['autoscaler: forecast, target_qps_per_replica: 2', 'forecast, target QPS per replica: 2'],
  ['autoscaler: forecast, target_qps_per_replica: 2, target_ttfb_seconds: 3', 'forecast, target QPS per replica: 2, first byte within 3 s'],
  ['autoscaler: concurrency, target_ongoing_requests_per_replica: 8', 'concurrency, target ongoing requests per replica: 8'],
  [
    'autoscaler: concurrency, target_ongoing_requests_per_replica: 8, metrics_path: /metrics',
    'concurrency, target ongoing requests per replica: 8, engine metrics from /metrics',
  ],
])('describes %s', (fields, words) => {
  const policy = `min_replicas: 1, max_replicas: 3, ${fields}`;
  expect(describeAutoscaling(parseText(`service: {ports: 80, replica_policy: {${policy}}}`))).toBe(
    `Autoscaling from 1 to 3 replicas (${words})`,
  );
});

test('describes a schedule and a price limit', () => {
  const schedule = '[{cron: 0 8 * * *, timezone: Europe/Berlin, min_replicas: 2}]';
  expect(describe(`service: {ports: 80, max_hourly_cost: 2.5, replica_policy: {min_replicas: 1, schedule: ${schedule}}}`)).toMatchObject({
    'Replica autoscaling policy': 'Fixed 1 replica; 1 scheduled change of the bounds',
    'Most that replicas may cost': '$2.5 an hour',
  });
});

test('describes an engine that sleeps', () => {
  const source =
    'service: {ports: 80, replica_policy: {min_replicas: 0, max_replicas: 2, target_qps_per_replica: 1, scale_to_zero: sleep}}';
  expect(describeAutoscaling(parseText(source))).toBe('Autoscaling from 0 to 2 replicas (target QPS per replica: 1); at zero, one sleeps');
});

test('describes autoscaling', () => {
  const source = `service: {ports: 80, load_balancing_policy: instance_aware_least_load, replica_policy: {min_replicas: 0, max_replicas: 2, target_qps_per_replica: {L4: 1, A100: 4}}}`;
  expect(describeAutoscaling(parseText(source))).toBe('Autoscaling from 0 to 2 replicas (target QPS per replica: L4: 1, A100: 4)');
  expect(describeAutoscaling(parseText('service: {ports: 80}'))).toBe('Fixed 1 replica');
  expect(describeAutoscaling(parseText('run: x'))).toBe('-');
});

test.each([
  ['run: x', '-'],
  ['resources: {cpus: 1, memory: 512MB}', '1 CPU, 0.5 GB'],
  [
    'resources: {cpus: 4+, memory: 16+, accelerators: L4:2, infra: aws/us-east-1, use_spot: true}',
    'aws/us-east-1, L4:2, 4+ CPUs, 16+ GB, spot',
  ],
  ['resources: {accelerators: 80GB+, instance_type: big}', '80+ GB GPU:1, big'],
  ['resources: {infra: "*/eu", accelerators: [H100, L4]}\nnum_nodes: 2', '2x[*/eu, H100:1, else */eu, L4:1]'],
  ['resources: {any_of: [{cpus: 1}, {cpus: 2}, {cpus: 3}, {cpus: 4}, {cpus: 1}]}', '1 CPU or 2 CPUs or 3 CPUs and 1 more'],
])('describes resources: %s', (source, words) => {
  expect(describeResources(parseText(source))).toBe(words);
});
