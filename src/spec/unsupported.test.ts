import { expect, test } from 'vitest';
import { parseText, problemLine, sourceOf } from '../../test/support/task-text.ts';
import { SvcError } from '../shared/errors.ts';
import { edgeProxyAbilities, features, refuseUnsupported, unsupportedFeatures } from './unsupported.ts';

const fieldsOf = (source: string, ...can: readonly string[]): readonly string[] =>
  unsupportedFeatures(parseText(source), { can: new Set(can) }).map(({ field }) => field);

test.each([
  ['tls', 'service: {ports: 80, tls: {keyfile: a, certfile: b}}', ['service.tls']],
  [
    'bucket_mounts',
    'file_mounts: {./a: {source: s3://b}, ./c: {name: d, mode: MOUNT_CACHED}, ./e: s3://f, ./g: {source: ./h, mode: COPY}}',
    ['file_mounts.a', 'file_mounts.c'],
  ],
  [
    'other_buckets',
    'file_mounts: {./a: gs://b, ./c: s3://d, ./e: https://f/g, ./h: https://i.blob.core.windows.net/j, ./k: {name: l, mode: COPY}}',
    ['file_mounts.a', 'file_mounts.h', 'file_mounts.k'],
  ],
  [
    'mounts_above_workdir',
    'file_mounts: {/a: b, ~/c: d, ../e: f, ./g: h, i/../../j: k, ~other/l: m}',
    ['file_mounts.../e', 'file_mounts.../j', 'file_mounts.~other/l'],
  ],
  ['git_workdir', 'workdir: {url: x}', ['workdir.url']],
  [
    'target_qps_per_accelerator',
    'service: {ports: 80, load_balancing_policy: instance_aware_least_load, replica_policy: {min_replicas: 1, max_replicas: 2, target_qps_per_replica: {L4: 1}}}',
    ['service.replica_policy.target_qps_per_replica'],
  ],
  ['balancer_threads', 'service: {ports: 80, load_balancer: {threads: 2}}', ['service.load_balancer.threads']],
  ['metrics_port', 'service: {ports: 80, load_balancer: {metrics_port: 9000}}', ['service.load_balancer.metrics_port']],
  ['pool', 'pool: {workers: 1}', ['pool']],
  ['volumes_elsewhere', 'volumes: {/a: b}', ['volumes']],
  ['managed_secrets', 'secrets: ["secrets:A"]', ['managed_secrets']],
  ['inputs', 'inputs: {a: 1}', ['inputs']],
  ['autostop', 'resources: {autostop: 5}', ['resources.autostop']],
  ['job_recovery', 'resources: {job_recovery: failover}', ['resources.job_recovery']],
])('%s is reported only without the ability', (feature, source, fields) => {
  expect(fieldsOf(source)).toEqual(fields);
  expect(fieldsOf(source, feature)).toEqual([]);
});

test('with edge proxies, plain HTTP is not redirected and clients need no certificate', () => {
  const source =
    'service: {ports: 80, tls: {keyfile: k, certfile: c, client_ca: a}, load_balancer: {http_redirect_port: 8080}}\nresources: {ports: 80}\nrun: b\n';
  const task = parseText(source);
  const fields = ['service.load_balancer.http_redirect_port', 'service.tls.client_ca'];
  expect(unsupportedFeatures(task, edgeProxyAbilities).map(({ field }) => field)).toEqual(fields);
  expect(unsupportedFeatures(task)).toEqual([]);
});

test('supported and irrelevant fields are never reported', () => {
  const source = `
name: x
resources: {ports: [80, 81], cpus: 2, memory: 4, accelerators: L4, disk_size: 100, max_hourly_cost: 1, labels: {a: b}, infra: local, autostop: false, use_spot: true, image_id: x, disk_tier: best, network_tier: best}
service: {ports: 80, replicas: 2, expose: true, load_balancer: {port: 31000, threads: 1}}
envs: {A: b}
secrets: {C: d}
file_mounts: {./a: b}
workdir: .
setup: a
run: b
_metadata: {a: 1}
api_server_access: false
`;
  expect(fieldsOf(source)).toEqual([]);
});

test('TLS, targets per accelerator and threads are supported', () => {
  const source = `service:
  ports: 80
  tls: {keyfile: a, certfile: b}
  load_balancing_policy: instance_aware_least_load
  replica_policy: {min_replicas: 1, max_replicas: 2, target_qps_per_replica: {L4: 1}}
  load_balancer: {threads: 2}
`;
  expect(unsupportedFeatures(parseText(source))).toEqual([]);
});

/** The error that refuses a text. */
function refusal(text: string, secrets: Readonly<Record<string, string>> = {}): SvcError {
  try {
    refuseUnsupported(parseText(text, { secrets }), sourceOf(text, { secrets }));
  } catch (error: unknown) {
    if (error instanceof SvcError) return error;
    throw error;
  }
  throw new Error('the task was accepted');
}

test('all unsupported features are rejected at once, with position and hint', () => {
  const text = `pool: {workers: 1}
file_mounts:
  ../a/: b
resources:
  autostop: true
  any_of:
    - job_recovery: failover
    - {job_recovery: failover, cpus: 2}
    - use_spot: false
secrets: ["secrets:A"]
`;
  const error = refusal(text);
  expect(error).toMatchObject({
    code: 'SVC_NOT_SUPPORTED',
    message: 'This version cannot act on file_mounts.../a, pool, managed_secrets, resources.autostop, resources.job_recovery.',
    hint: 'Remove or change: file_mounts.../a, pool, managed_secrets, resources.autostop, resources.job_recovery',
  });
  expect(error.problems.map(problemLine)).toEqual([
    "1:1 this version cannot act on 'pool' (Pools of workers are not there yet; use replicas of a service.)",
    "3:3 file_mounts: this version cannot act on '../a/' (Write a target inside the working directory, such as ./data, an absolute one, or one below ~/.)",
    "5:3 resources: this version cannot act on 'autostop' (Single machines do not stop by themselves yet; leave it out and use: svc down.)",
    "7:7 resources.any_of[0]: this version cannot act on 'job_recovery' (Jobs are not recovered yet; leave it out.)",
    "8:8 resources.any_of[1]: this version cannot act on 'job_recovery' (Jobs are not recovered yet; leave it out.)",
    "10:1 this version cannot act on 'secrets' (There is no store of secrets yet; name them below secrets and give them with --secret.)",
  ]);
  expect(error.problems[0]?.excerpt).toBe('1 | pool: {workers: 1}\n  | ^');
  expect(() =>
    refuseUnsupported(parseText('pool: {workers: 1}'), sourceOf('pool: {workers: 1}'), { can: new Set([...features, 'pool']) }),
  ).not.toThrow();
});

test('the position of a service field is that field', () => {
  const text = 'service:\n  ports: 80\n  pool:\n    workers: 1\n';
  expect(refusal(text).problems.map(problemLine)).toEqual([
    "3:3 service: this version cannot act on 'pool' (Pools of workers are not there yet; use replicas of a service.)",
  ]);
});

test('a secret in a mount target is not shown', () => {
  const error = refusal('file_mounts: {../data/$KEY: b}\n', { KEY: 'hunter2hunter2' });
  expect(error.message).toBe('This version cannot act on file_mounts.../data/***.');
  expect(error.problems.map(problemLine)).toEqual([expect.stringContaining("1:15 file_mounts: this version cannot act on '../data/$KEY'")]);
});
