import { expect, test } from 'vitest';
import { someResources } from '../../../test/support/builders.ts';
import type { LocalRegion } from '../../domain/config.ts';
import type { Resources } from '../../domain/task.ts';
import { isMachineId } from '../provider.ts';
import { localOffers, type LocalFacts } from './offers.ts';

const facts: LocalFacts = {
  cpus: 8,
  memoryGb: 31.3,
  gpus: [
    { index: 0, name: 'NVIDIA A100-SXM4-80GB', memoryGb: 79.6 },
    { index: 1, name: 'NVIDIA A100-SXM4-80GB', memoryGb: 79.6 },
  ],
};
const regions: readonly LocalRegion[] = ['one', 'two'].map((name) => ({
  name,
  state: 'up',
  refuseWith: 'capacity',
  maxMachines: undefined,
}));

const offersFor = (change: Partial<Resources>) => localOffers(someResources(change), facts, { regions, spotZones: [], hourlyUsd: 0 }, []);

test('this computer is offered once per region, free of charge', () => {
  const { offers, whyNone } = offersFor({ cloud: 'local', cpus: { value: 4, atLeast: false }, memory: { value: 16, atLeast: true } });
  expect(whyNone).toBeUndefined();
  expect(offers.map(({ region, cpus, hourlyUsd, accelerator }) => [region, cpus, hourlyUsd, accelerator])).toEqual([
    ['one', 8, 0, undefined],
    ['two', 8, 0, undefined],
  ]);
});

test('a requested region limits the offers', () => {
  expect(offersFor({ region: 'two' }).offers.map(({ region }) => region)).toEqual(['two']);
});

test('GPUs are offered by the requested name', () => {
  expect(offersFor({ accelerator: { name: 'a100-80gb', count: 2 } }).offers[0]?.accelerator).toEqual({ name: 'a100-80gb', count: 2 });
  const acceleratorMemory = { value: 48, atLeast: true, count: 1, manufacturer: 'nvidia' };
  expect(offersFor({ acceleratorMemory }).offers[0]?.accelerator).toEqual({ name: 'NVIDIA A100-SXM4-80GB', count: 1 });
});

test('the room of a region ends with its free GPUs or its machines, and no other request has an end', () => {
  const machine = { tags: {}, isolation: 'none', outbound: 'none', cookie: 'c', ownPort: null } as const;
  const id = 'm';
  if (!isMachineId(id)) throw new Error('the id is empty');
  const taken = [{ ...machine, id, key: id, region: 'one', gpus: [1], createdAt: 0, preempted: false }];
  const roomsOf = (change: Partial<Resources>, limits: readonly LocalRegion[] = regions) =>
    localOffers(someResources(change), facts, { regions: limits, spotZones: [], hourlyUsd: 0 }, taken).offers.map(({ room }) => room);
  const oneGpu = { accelerator: { name: 'a100-80gb', count: 1 } };
  expect([roomsOf({}), roomsOf(oneGpu), roomsOf({ accelerator: { name: 'a100-80gb', count: 2 } })]).toEqual([
    [undefined, undefined],
    [1, 1],
    [0, 0],
  ]);
  expect(
    roomsOf(
      oneGpu,
      regions.map((region) => ({ ...region, maxMachines: 1 })),
    ),
  ).toEqual([0, 1]);
});

test.for<readonly [Partial<Resources>, string]>([
  [{ cloud: 'aws' }, "It is asked for on 'aws'."],
  [{ useSpot: true }, 'use_spot is asked for, and this computer has no spot zones (local.spot_zones).'],
  [{ instanceType: 'g5.xlarge' }, "The instance type 'g5.xlarge' is asked for, and this computer has no instance types."],
  [{ imageId: 'docker:vllm' }, 'image_id is asked for, and programs run on this computer as it is, without images.'],
  [{ cpus: { value: 16, atLeast: true } }, '16+ CPUs are asked for, and this computer has 8.'],
  [{ memory: { value: 64, atLeast: false } }, '64 GB of memory are asked for, and this computer has 31.3 GB.'],
  [{ accelerator: { name: 'H100', count: 1 } }, '1x H100 is asked for, and this computer has 2x NVIDIA A100-SXM4-80GB.'],
  [{ accelerator: { name: 'A100', count: 4 } }, '4x A100 are asked for, and this computer has 2x NVIDIA A100-SXM4-80GB.'],
  [
    { acceleratorMemory: { value: 141, atLeast: true, count: 1, manufacturer: undefined } },
    '1x GPU with 141+ GB is asked for, and this computer has 2x NVIDIA A100-SXM4-80GB.',
  ],
  [{ region: 'three' }, "The region 'three' is asked for, and there are: one, two."],
  [{ zone: 'one-a' }, "The zone 'one-a' is asked for, and this computer has no zones."],
])('without an offer the reason is given: %s', ([resources, sentence]) => {
  expect(offersFor(resources)).toEqual({ offers: [], whyNone: sentence });
});
