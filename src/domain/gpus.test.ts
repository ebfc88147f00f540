import { expect, test } from 'vitest';
import { isGpuNamed, matchingGpus, parseGpuList, requestedGpuCount } from './gpus.ts';

const gpu = (name: string) => ({ index: 0, name, memoryGb: 24 });

test.for<readonly [requested: string, actual: string, matches: boolean]>([
  ['A100', 'NVIDIA A100-SXM4-80GB', true],
  ['a100-80gb', 'NVIDIA A100-SXM4-80GB', true],
  ['A100-40GB', 'NVIDIA A100-SXM4-80GB', false],
  ['H100', 'NVIDIA H100 80GB HBM3', true],
  ['T4', 'Tesla T4', true],
  ['RTX4090', 'NVIDIA GeForce RTX 4090', true],
  ['rtx-4090', 'NVIDIA GeForce RTX 4090', true],
  ['L4', 'NVIDIA L40S', false],
  ['L40', 'NVIDIA L40S', false],
  ['A10', 'NVIDIA A100-SXM4-80GB', false],
  ['H', 'NVIDIA H100 80GB HBM3', false],
  ['.*', 'NVIDIA L4', false],
])('%s and %s', ([requested, actual, matches]) => {
  expect(isGpuNamed(gpu(actual), requested)).toBe(matches);
});

test("only lines of the driver's list are parsed", () => {
  const text = '0, NVIDIA L4, 23034\n1, Tesla T4, [N/A]\nNVIDIA-SMI has failed because it could not talk to the driver\n\n';
  expect(parseGpuList(text)).toEqual([
    { index: 0, name: 'NVIDIA L4', memoryGb: 23_034 / 1_024 },
    { index: 1, name: 'Tesla T4', memoryGb: undefined },
  ]);
});

test('memory is compared by its nominal size, and the manufacturer if requested', () => {
  const gpus = parseGpuList('0, NVIDIA L4, 23034\n1, NVIDIA A100-SXM4-80GB, 81559');
  const indexes = (value: number, atLeast: boolean, manufacturer?: string): readonly number[] =>
    matchingGpus(gpus, { accelerator: undefined, acceleratorMemory: { value, atLeast, count: 1, manufacturer } }).map(({ index }) => index);
  expect(indexes(80, true)).toEqual([1]);
  expect(indexes(23, false)).toEqual([0]);
  expect(indexes(16, true, 'NVIDIA')).toEqual([0, 1]);
  expect(indexes(16, true, 'amd')).toEqual([]);
});

test('a fraction of a GPU occupies a whole one', () => {
  expect(requestedGpuCount({ accelerator: { name: 'L4', count: 0.5 }, acceleratorMemory: undefined })).toBe(1);
  expect(requestedGpuCount({ accelerator: undefined, acceleratorMemory: undefined })).toBe(0);
});
