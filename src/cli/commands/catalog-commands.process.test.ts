import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runInProcess, type CliResult } from '../../../test/support/cli-world.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { aPriceTable, anInstanceType, aRegionPrice } from '../../../test/support/price-tables.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { formatTable } from '../../catalog/table-format.ts';

const l4 = { name: 'L4', count: 1, memoryGb: 24 };
const east = aRegionPrice({ region: 'us-east-1', onDemandUsd: 0.8048, spotUsd: 0.31 });
const west = aRegionPrice({ region: 'us-west-1', onDemandUsd: 1.2, estimated: true });
const aws = aPriceTable({
  cloud: 'aws',
  types: [
    anInstanceType({ name: 'g6.xlarge', cpus: 4, memoryGb: 16, accelerator: l4, regions: [east, west] }),
    anInstanceType({ name: 'm7i.large', cpus: 2, memoryGb: 8, regions: [aRegionPrice({ onDemandUsd: 0.1008 })] }),
  ],
});
const gcp = aPriceTable({
  cloud: 'gcp',
  types: [
    anInstanceType({ name: 'g2-standard-8', accelerator: l4, regions: [aRegionPrice({ region: 'us-central1', onDemandUsd: 0.85 })] }),
  ],
});

/** Runs a command with these two price tables, ten days after their date. */
async function withTables(argv: readonly string[], width = 120): Promise<CliResult> {
  return withTempHome(async (home) => {
    mkdirSync(join(home, 'catalog'));
    for (const table of [aws, gcp]) writeFileSync(join(home, 'catalog', `${table.cloud}.csv`), formatTable(table));
    return runInProcess(argv, { home, width, tty: true, clock: new FakeClock(Date.parse('2026-01-29T00:00:00Z')) });
  });
}

test('without options, offers lists each GPU machine type in its cheapest region', async () => {
  const { code, stdout, stderr } = await withTables(['offers']);
  expect(code).toBe(0);
  expect(stdout).toMatchInlineSnapshot(`
    "GPU  QTY  CLOUD  INSTANCE_TYPE  DEVICE_MEM  vCPUs  HOST_MEM  HOURLY_PRICE  HOURLY_SPOT_PRICE  REGION
    L4   1    aws    g6.xlarge      24GB        4      16GB      $ 0.805       $ 0.310            us-east-1
    L4   1    gcp    g2-standard-8  24GB        8      32GB      $ 0.850       -                  us-central1
    "
  `);
  expect(stderr).toBe('gcp: catalogue only: svc has no provider for it yet.\n');
});

test.for([
  ['offers', 'l4:1'],
  ['offers', '--gpus', 'L4', '--infra', 'aws'],
  ['show-gpus', 'nvidia-l4'],
  ['offers', '--gpus', '24GB'],
])('GPUs can be requested in every form of a task file: %j', async (argv) => {
  const { code, stdout } = await withTables(argv);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('g6.xlarge') });
  expect(stdout).not.toContain('m7i.large');
});

test('--all shows all regions and marks estimated prices', async () => {
  const { stdout, stderr } = await withTables(['offers', '--infra', 'aws', '--gpus', 'L4', '--all']);
  expect(stdout).toContain('~$ 1.200');
  expect(stderr).toBe('~ marks a price that was worked out from those of other sizes and regions.\n');
});

test("offers of a size include the user's own machines", async () => {
  const { stdout } = await withTables(['offers', '--cpus', '1+']);
  expect(stdout.split('\n').slice(1, 3)).toEqual([expect.stringContaining('this computer'), expect.stringContaining('m7i.large')]);
});

test('offers --json has the same offers and notes', async () => {
  const { stdout } = await withTables(['offers', '--gpus', 'L4', '--infra', 'gcp', '--json']);
  expect(JSON.parse(stdout)).toEqual({
    offers: [
      {
        cloud: 'gcp',
        region: 'us-central1',
        name: 'g2-standard-8',
        cpus: 8,
        memoryGb: 32,
        accelerator: l4,
        architecture: 'x86_64',
        onDemandUsd: 0.85,
        estimated: false,
      },
    ],
    notes: ['gcp: catalogue only: svc has no provider for it yet.'],
  });
});

test.for([
  [['offers', 'L44'], "No machine in the tables of prices is like that. Did you mean 'L4'?"],
  [['offers', 'L4:3'], 'No machine in the tables of prices is like that.\n  Machines of'],
  [['offers', '--infra', 'lambda'], "There is no table of prices of 'lambda'."],
  [['offers', 'L4', '--gpus', 'L4'], 'GPUs are given twice'],
] as const)('no match is an error with the next step: %j', async ([argv, message]) => {
  const { code, stdout, stderr } = await withTables(argv);
  expect({ failed: code > 0, stdout, stderr }).toEqual({ failed: true, stdout: '', stderr: expect.stringContaining(message) });
});

test('old prices are reported with their age', async () => {
  const { stderr } = await withTempHome(async (home) =>
    runInProcess(['offers', 'H100'], { home, clock: new FakeClock(Date.parse('2027-01-01T00:00:00Z')) }),
  );
  expect(stderr).toContain('days ago');
  expect(stderr).toContain('svc catalog update aws');
});

test('catalog update reports used and skipped rows', async () => {
  await withTempHome(async (home) => {
    const header = 'InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region';
    writeFileSync(join(home, 'vms.csv'), `${header}\ngpu_1x_a10,A10,1.0,30.0,200.0,,0.75,,east\n,T4,1.0,,,,0.2,,east\n`);
    const clock = new FakeClock(Date.parse('2026-01-29T00:00:00Z'));
    const updated = await runInProcess(['catalog', 'update', 'Lambda', '--from', 'vms.csv'], { home, cwd: home, clock });
    expect(updated).toMatchObject({ code: 0, stderr: '' });
    expect(updated.stdout).toMatch(
      /^lambda: 1 machine types in 1 regions, prices of \d{4}-\d\d-\d\d; 1 rows describe nothing that svc can use\.\n$/,
    );
    expect((await runInProcess(['offers', 'A10', '--json'], { home, clock })).stdout).toContain('gpu_1x_a10');
    const json = await runInProcess(['catalog', 'update', 'lambda', '--from', 'vms.csv', '--json'], { home, cwd: home, clock });
    expect(JSON.parse(json.stdout)).toMatchObject({ updates: [{ cloud: 'lambda', types: 1, skippedRows: 1 }] });
  });
});

test('catalog update of a cloud without a known list suggests --from', async () => {
  const { code, stderr } = await runInProcess(['catalog', 'update', 'gcp']);
  expect({ failed: code > 0, stderr }).toEqual({
    failed: true,
    stderr: expect.stringContaining('svc catalog update gcp --from URL|FOLDER'),
  });
});
