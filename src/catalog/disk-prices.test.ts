import { expect, test } from 'vitest';
import { noDiskPrices, parseDiskPrices } from './disk-prices.ts';

const header = 'region,tier,volume,iops,throughput_mbs,gb_month,iops_month,free_iops,mbs_month,free_mbs';
const disks = parseDiskPrices(
  `# a note\n${header}\n*,medium,gp3,3500,218,0.08,0.005,3000,0.04,125\nwest,medium,gp3,3000,125,0.096,0.006,3000,0.048,125\n*,ultra,io2,20000,,0.125,0.065,0,,\n`,
  'disks.csv',
);

test('a disk costs its size and its provisioning beyond the free part', () => {
  expect(disks.hourlyUsd('east', 'medium', 256) * 730).toBeCloseTo(256 * 0.08 + 500 * 0.005 + 93 * 0.04);
  expect(disks.hourlyUsd('east', 'ultra', 256) * 730).toBeCloseTo(256 * 0.125 + 20_000 * 0.065);
});

test('a region with its own prices uses them', () => {
  expect(disks.hourlyUsd('west', 'medium', 100) * 730).toBeCloseTo(9.6);
});

test('without a tier the disk is medium, and best is the highest tier', () => {
  expect(disks.kind(undefined)).toEqual({ volume: 'gp3', iops: 3500, throughputMbs: 218 });
  expect(disks.kind('best')).toEqual({ volume: 'io2', iops: 20_000, throughputMbs: undefined });
  expect(disks.hourlyUsd('east', 'best', 10)).toBe(disks.hourlyUsd('east', 'ultra', 10));
});

test('a missing tier has no kind and no price', () => {
  expect([disks.kind('low'), disks.hourlyUsd('east', 'low', 100), noDiskPrices.hourlyUsd('east', 'medium', 100)]).toEqual([
    undefined,
    0,
    0,
  ]);
});

test('a file that is no table of disks is refused', () => {
  expect(() => parseDiskPrices(`${header}\n*,medium,gp3\n`, 'disks.csv')).toThrow(expect.objectContaining({ code: 'SVC_CATALOG' }));
  expect(() => parseDiskPrices('tier,gb_month\nmedium,1\n', 'disks.csv')).toThrow(expect.objectContaining({ code: 'SVC_CATALOG' }));
});
