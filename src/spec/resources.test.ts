import { expect, test } from 'vitest';
import { parseText } from '../../test/support/task-text.ts';

const choicesOf = (resources: string) => parseText(`resources: ${resources}\n`).resources;
const acceleratorsOf = (text: string) => {
  const { order, choices } = choicesOf(`{accelerators: ${text}}`);
  return [order, ...choices.map(({ accelerator }) => accelerator && `${accelerator.name}:${accelerator.count}`)];
};

test.each([
  ['T4', ['any', 'T4:1']],
  ['T4:4', ['any', 'T4:4']],
  ['"T4:0.5"', ['any', 'T4:0.5']],
  ['A100-80GB:8', ['any', 'A100-80GB:8']],
  ['tpu-v5e-8', ['any', 'tpu-v5e-8:1']],
  ['{T4: 1}', ['any', 'T4:1']],
  ['{L4: 2, A10g: 4}', ['any', 'L4:2', 'A10g:4']],
  ['{L4:8, A10g:8}', ['any', 'L4:8', 'A10g:8']],
  ['[H100:8, A100:8]', ['ordered', 'H100:8', 'A100:8']],
])('accelerators: %s', (text, expected) => {
  expect(acceleratorsOf(text)).toEqual(expected);
});

test.each([
  ['80GB', { value: 80, atLeast: false, count: 1, manufacturer: undefined }],
  ['80GB+', { value: 80, atLeast: true, count: 1, manufacturer: undefined }],
  ['NVIDIA:80GB:2', { value: 80, atLeast: false, count: 2, manufacturer: 'NVIDIA' }],
  ['"40gb+:4"', { value: 40, atLeast: true, count: 4, manufacturer: undefined }],
])('accelerators by their memory: %s', (text, expected) => {
  expect(choicesOf(`{accelerators: ${text}}`).choices[0]).toMatchObject({ accelerator: undefined, acceleratorMemory: expected });
});

test('gpus is an alias of accelerators', () => {
  expect(choicesOf('{gpus: L4:2}')).toEqual(choicesOf('{accelerators: L4:2}'));
});

test.each([
  ['4', { value: 4, atLeast: false }],
  ['"4"', { value: 4, atLeast: false }],
  ['4+', { value: 4, atLeast: true }],
  ['4.5', { value: 4.5, atLeast: false }],
])('cpus: %s', (text, cpus) => {
  expect(choicesOf(`{cpus: ${text}}`).choices[0]?.cpus).toEqual(cpus);
});

test.each([
  ['16', { value: 16, atLeast: false }],
  ['16+', { value: 16, atLeast: true }],
  ['16GB', { value: 16, atLeast: false }],
  ['16 GB', { value: 16, atLeast: false }],
  ['1tb', { value: 1024, atLeast: false }],
  ['512MB+', { value: 0.5, atLeast: true }],
  ['2x, cpus: 8', { value: 16, atLeast: true }],
])('memory: %s', (text, memory) => {
  expect(choicesOf(`{memory: ${text}}`).choices[0]?.memory).toEqual(memory);
});

test.each([
  ['100', 100],
  ['"100"', 100],
  ['100GB', 100],
  ['1TB', 1024],
])('disk_size: %s', (text, diskSizeGb) => {
  expect(choicesOf(`{disk_size: ${text}}`).choices[0]?.diskSizeGb).toBe(diskSizeGb);
});

test.each([
  ['infra: aws', 'aws', undefined, undefined],
  ['infra: AWS/us-east-1', 'aws', 'us-east-1', undefined],
  ['infra: gcp/us-central1/us-central1-a', 'gcp', 'us-central1', 'us-central1-a'],
  ['infra: aws/*/us-east-1a', 'aws', undefined, 'us-east-1a'],
  ['infra: "*"', undefined, undefined, undefined],
  ['infra: "*/us-east-1"', undefined, 'us-east-1', undefined],
  ['infra: k8s', 'kubernetes', undefined, undefined],
  ['infra: k8s/arn:aws:eks:us-east-1:1234:cluster/mine', 'kubernetes', 'arn:aws:eks:us-east-1:1234:cluster/mine', undefined],
  ['infra: ssh/my-pool', 'ssh', 'my-pool', undefined],
  ['cloud: GCP, region: r, zone: z', 'gcp', 'r', 'z'],
  ['region: us-east-1', undefined, 'us-east-1', undefined],
])('%s', (text, cloud, region, zone) => {
  expect(choicesOf(`{${text}}`).choices[0]).toMatchObject({ cloud, region, zone });
});

test.each([
  ['8080', [8080]],
  ['"8080"', [8080]],
  ['8000-8002', [8000, 8001, 8002]],
  ['[8002, "8000-8001", 8001]', [8000, 8001, 8002]],
])('ports: %s', (text, ports) => {
  expect(choicesOf(`{ports: ${text}}`).choices[0]?.ports).toEqual(ports);
});

test('duplicate ports of a range are listed once', () => {
  expect(choicesOf(`{ports: [${Array.from({ length: 100 }, () => '1-65535').join(', ')}]}`).choices[0]?.ports).toHaveLength(65_535);
});

test('any_of entries inherit outer fields; labels merge without leaking between entries', () => {
  const { order, choices } = choicesOf(`
  cpus: 4+
  use_spot: true
  labels: {team: ml}
  any_of:
    - {infra: aws/us-east-1, labels: {a: "1"}}
    - {infra: gcp, cpus: 8, labels: {team: web}}`);
  expect(order).toBe('any');
  expect(choices).toMatchObject([
    { cloud: 'aws', region: 'us-east-1', cpus: { value: 4, atLeast: true }, useSpot: true, labels: { team: 'ml', a: '1' } },
    { cloud: 'gcp', region: undefined, cpus: { value: 8, atLeast: false }, useSpot: true, labels: { team: 'web' } },
  ]);
  expect(choices[1]?.labels).toEqual({ team: 'web' });
});

test('an entry may refine the outer location or replace it', () => {
  const { choices } = choicesOf('{infra: aws, any_of: [{region: us-east-1}, {infra: gcp/us-west1}]}');
  expect(choices).toMatchObject([
    { cloud: 'aws', region: 'us-east-1' },
    { cloud: 'gcp', region: 'us-west1' },
  ]);
});

test('ordered keeps its order, and outer accelerators multiply the entries', () => {
  const { order, choices } = choicesOf('{accelerators: {L4: 1, T4: 1}, ordered: [{infra: aws}, {infra: gcp}]}');
  expect(order).toBe('ordered');
  expect(choices.map(({ cloud, accelerator }) => `${cloud} ${accelerator?.name}`)).toEqual(['aws L4', 'aws T4', 'gcp L4', 'gcp T4']);
});

test('all other fields of a machine are read', () => {
  const { choices } = choicesOf(`
  instance_type: p4d.24xlarge
  disk_tier: BEST
  network_tier: best
  image_id: {us-east-1: ami-1}
  max_hourly_cost: 2.5
  autostop: 10m
  priority: -5
  local_disk: nvme
  ephemeral_storage: 10
  accelerator_args: {runtime_version: v2}
  volumes: []`);
  expect(choices[0]).toMatchObject({
    instanceType: 'p4d.24xlarge',
    diskTier: 'best',
    networkTier: 'best',
    imageId: { 'us-east-1': 'ami-1' },
    maxHourlyCost: 2.5,
    otherFields: ['autostop', 'priority', 'local_disk', 'ephemeral_storage', 'accelerator_args', 'volumes'],
  });
});

test.each(['true', 'false', '5', '10m', '2w', '{idle_minutes: 5, down: true, wait_for: jobs, hook: echo, hook_timeout: 3}'])(
  'autostop: %s',
  (text) => {
    expect(choicesOf(`{autostop: ${text}}`).choices[0]?.otherFields).toEqual(text === 'false' ? [] : ['autostop']);
  },
);
