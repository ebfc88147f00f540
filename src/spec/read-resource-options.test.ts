import { expect, test } from 'vitest';
import { readResourceOptions, type ResourceOptions } from './read-resource-options.ts';

const read = (change: Partial<ResourceOptions>) =>
  readResourceOptions({
    gpus: undefined,
    infra: undefined,
    cpus: undefined,
    memory: undefined,
    instanceType: undefined,
    useSpot: false,
    ...change,
  });

test('options are read like the fields of a task file', () => {
  expect(read({ gpus: 'H100:8', infra: 'AWS/us-east-2', cpus: '4+', memory: '16+', useSpot: true })).toMatchObject({
    cloud: 'aws',
    region: 'us-east-2',
    zone: undefined,
    cpus: { value: 4, atLeast: true },
    memory: { value: 16, atLeast: true },
    accelerator: { name: 'H100', count: 8 },
    useSpot: true,
    diskSizeGb: 0,
  });
  expect(read({ gpus: '80GB+:2' }).acceleratorMemory).toEqual({ value: 80, atLeast: true, count: 2, manufacturer: undefined });
  expect(read({ cpus: '4', memory: '2x' }).memory).toEqual({ value: 8, atLeast: true });
});

test.for<[Partial<ResourceOptions>, string, string]>([
  [{ cpus: 'many' }, '--cpus many: must be a number', 'Write for instance: --cpus 4 or --cpus 4+'],
  [{ memory: '16GiB' }, '--memory 16GiB: the unit is not known', 'Write GB instead of GiB'],
  [{ infra: 'a/b/c/d' }, '--infra a/b/c/d: must be CLOUD', 'Write for instance: --infra aws/us-east-1'],
  [{ gpus: 'L4:0' }, '--gpus L4:0: the count must be greater than 0', 'Leave'],
  [{ gpus: 'L4:1:1' }, '--gpus L4:1:1: must be NAME', 'Write for instance: --gpus L4'],
])('a problem names its option: %j', ([options, message, hint]) => {
  expect(() => read(options)).toThrow(
    expect.objectContaining({ code: 'SVC_USAGE', message: expect.stringContaining(message), hint: expect.stringContaining(hint) }),
  );
});
