import { mkdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aPriceTable, anInstanceType } from '../../test/support/price-tables.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { someResources } from '../../test/support/builders.ts';
import { acceleratorMemoryGb, canonicalAccelerator } from '../domain/accelerators.ts';
import { programFile } from '../shared/program-files.ts';
import { catalogOffers } from './catalog-offers.ts';
import { countPrices, regionsOf } from './price-table.ts';
import { PriceTables } from './price-tables.ts';
import { formatTable } from './table-format.ts';

const expected = ['T4', 'L4', 'A10G', 'L40S', 'A100', 'A100-80GB', 'H100', 'H200', 'B200'];

async function builtIn(cloud: string) {
  const table = await new PriceTables('/nowhere').table(cloud);
  if (table === undefined) throw new Error(`there is no built-in table of ${cloud}`);
  return table;
}

test('the built-in AWS table has common accelerators and small machines without any', async () => {
  const table = await builtIn('aws');
  const names = new Set(table.types.map(({ accelerator }) => accelerator?.name));
  expect(expected.filter((name) => !names.has(name))).toEqual([]);
  expect(
    ['t3.medium', 't4g.medium', 'm7i.xlarge', 'c7i.2xlarge'].map((name) => table.types.find((type) => type.name === name)?.architecture),
  ).toEqual(['x86_64', 'arm64', 'x86_64', 'x86_64']);
  expect(regionsOf(table).length).toBeGreaterThan(20);
  expect(countPrices(table)).toBeGreaterThan(1_500);
});

test("each of its accelerators has a canonical name and that name's memory", async () => {
  const wrong = (await builtIn('aws')).types.filter(({ accelerator }) => {
    if (accelerator === undefined) return false;
    // Manufacturers and clouds disagree about the last few GB.
    const difference = Math.abs((accelerator.memoryGb ?? 0) / (acceleratorMemoryGb(accelerator.name) ?? 0) - 1);
    return canonicalAccelerator(accelerator.name) !== accelerator.name || !(difference < 0.1);
  });
  expect(wrong).toEqual([]);
});

test('its prices are near those of us-east-1, and spot never exceeds on-demand', async () => {
  const odd = (await builtIn('aws')).types.flatMap(({ name, regions }) => {
    const home = regions.find(({ region }) => region === 'us-east-1')?.onDemandUsd;
    return regions
      .filter(({ onDemandUsd, spotUsd }) => {
        if (onDemandUsd === undefined) return false;
        const proportion = onDemandUsd / (home ?? onDemandUsd);
        return proportion < 0.5 || proportion > 2 || (spotUsd ?? 0) > onDemandUsd * 1.001;
      })
      .map(({ region }) => `${name} in ${region}`);
  });
  expect(odd).toEqual([]);
});

test('its prices with the disk equal the published ones', async () => {
  const tables = new PriceTables('/nowhere');
  const table = await builtIn('aws');
  const disks = await tables.disks('aws');
  const cheapest = (gpus: string, count: number) =>
    catalogOffers(table, someResources({ region: 'us-east-1', accelerator: { name: gpus, count }, diskSizeGb: 100 }), { disks }).offers[0];
  // 100 GB of gp3 with 3500 IOPS and 218 MB/s: (8 + 2.5 + 3.72) $ a month.
  expect(cheapest('T4', 1)).toMatchObject({ instanceType: 'g4dn.xlarge', hourlyUsd: expect.closeTo(0.526 + 14.22 / 730, 6) });
  expect(cheapest('h100', 8)).toMatchObject({ instanceType: 'p5.48xlarge', hourlyUsd: expect.closeTo(55.04 + 14.22 / 730, 6) });
});

test('an updated table overrides the built-in one, and its changes are read', async () => {
  await withTempHome(async (dir) => {
    const path = join(dir, 'aws.csv');
    const tables = new PriceTables(dir);
    expect((await tables.table('aws'))?.source).toContain('Karpenter');
    writeFileSync(path, formatTable(aPriceTable({ cloud: 'aws', source: 'first' })));
    expect((await tables.table('aws'))?.source).toBe('first');
    writeFileSync(path, formatTable(aPriceTable({ cloud: 'aws', source: 'second', types: [anInstanceType({ name: 'other' })] })));
    utimesSync(path, 1, 1);
    expect((await tables.table('aws'))?.source).toBe('second');
  });
});

test('clouds lists all that have a built-in or updated table', async () => {
  await withTempHome(async (dir) => {
    writeFileSync(join(dir, 'lambda.csv'), formatTable(aPriceTable({ cloud: 'lambda' })));
    writeFileSync(join(dir, 'notes.txt'), 'nothing');
    const tables = new PriceTables(dir);
    expect(await tables.clouds()).toEqual(['aws', 'lambda']);
    expect(await tables.table('gcp')).toBeUndefined();
    expect(await tables.table('../aws')).toBeUndefined();
  });
});

test('an unreadable table is reported by its name', async () => {
  await withTempHome(async (dir) => {
    writeFileSync(join(dir, 'gcp.csv'), 'rubbish\n');
    mkdirSync(join(dir, 'azure.csv'));
    const tables = new PriceTables(dir);
    await expect(tables.table('gcp')).rejects.toMatchObject({ code: 'SVC_CATALOG', message: expect.stringContaining('gcp.csv') });
    await expect(tables.table('azure')).rejects.toMatchObject({ code: 'SVC_CATALOG', message: expect.stringContaining('azure.csv') });
  });
});

test('the built-in table has a size limit', () => {
  expect(statSync(programFile('catalog/aws.csv')).size).toBeLessThan(400_000);
});
