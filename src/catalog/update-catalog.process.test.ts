import { existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { PriceTables } from './price-tables.ts';
import { updateCatalog, type CatalogUpdateContext, type CatalogUpdateRequest } from './update-catalog.ts';

const skypilotHeader = 'InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone,Arch';
const gpuInfo = `"{'Gpus': [{'Name': 'X', 'Manufacturer': 'NVIDIA', 'Count': 2.0, 'MemoryInfo': {'SizeInMiB': 24576}}], 'TotalGpuMemoryInMiB': 49152}"`;

const skypilotRows = [
  skypilotHeader,
  `g2-standard-8,L4,1.0,8.0,32.0,${gpuInfo},0.85,0.31,us-central1,us-central1-a,x86_64`,
  `g2-standard-8,L4,1.0,8.0,32.0,${gpuInfo},0.85,0.29,us-central1,us-central1-b,x86_64`,
  `g2-standard-8,L4,1.0,8.0,32.0,${gpuInfo},0.94,,europe-west4,europe-west4-a,x86_64`,
  `x9-highgpu-2g,X999,2.0,32.0,128.0,${gpuInfo},9.5,,us-central1,us-central1-a,x86_64`,
  't2a-standard-4,,,4.0,16.0,,0.154,,us-central1,us-central1-a,arm64',
  // Google sells accelerators without a machine.
  ',tpu-v2,8.0,,,,4.5,1.35,us-central1,us-central1-a,',
  'mac9.metal,,,12.0,32.0,,,,us-central1,us-central1-a,arm64_mac',
  'g4dn.xlarge,T4,1.0,4.0,16.0,,0.526,0.06,us-west-2,usw2-lax1-az1,x86_64',
];

type Files = Readonly<Record<string, string>>;

/** A server on loopback with these files and their modification times. */
async function withServer(files: Files, use: (url: string, requests: readonly string[]) => Promise<void>): Promise<void> {
  const requests: string[] = [];
  const server: Server = createServer((request, response) => {
    requests.push(request.url ?? '');
    const text = files[(request.url ?? '').split('?')[0] ?? ''];
    if (text === 'BREAK') {
      response.writeHead(200);
      response.write(`${skypilotHeader}\n`, () => response.destroy());
      return;
    }
    response.writeHead(text === undefined ? 404 : 200, { 'last-modified': 'Mon, 19 Jan 2026 10:00:00 GMT' }).end(text ?? 'no');
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  try {
    await use(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`, requests);
  } finally {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
}

const context = (catalogDir: string, change: Partial<CatalogUpdateContext> = {}): CatalogUpdateContext => ({
  catalogDir,
  cwd: catalogDir,
  now: Date.parse('2026-03-01T00:00:00Z'),
  signal: new AbortController().signal,
  ...change,
});
const request = (change: Partial<CatalogUpdateRequest>): CatalogUpdateRequest => ({
  cloud: undefined,
  from: undefined,
  regions: undefined,
  ...change,
});

test("a list in SkyPilot's format is downloaded and becomes the cloud's table", async () => {
  await withServer({ '/v8/gcp/vms.csv': skypilotRows.join('\n') }, async (url) => {
    await withTempHome(async (home) => {
      const dir = join(home, 'catalog');
      const [update] = await updateCatalog(request({ cloud: 'gcp', from: `${url}/v8/` }), context(dir));
      expect(update).toEqual({
        cloud: 'gcp',
        path: join(dir, 'gcp.csv'),
        source: `SkyPilot's catalogue, ${url}/v8/gcp/vms.csv`,
        date: '2026-01-19',
        types: 3,
        regions: 2,
        prices: 9,
        badRows: 0,
        skippedRows: 3,
      });
      const table = await new PriceTables(dir).table('gcp');
      expect(
        table?.types.map(({ name, accelerator, architecture }) => [name, accelerator?.name, accelerator?.memoryGb, architecture]),
      ).toEqual([
        ['g2-standard-8', 'L4', 24, 'x86_64'],
        ['t2a-standard-4', undefined, undefined, 'arm64'],
        ['x9-highgpu-2g', 'X999', 24, 'x86_64'],
      ]);
      expect(table?.types[0]?.regions).toEqual([
        {
          region: 'europe-west4',
          onDemandUsd: 0.94,
          spotUsd: undefined,
          estimated: false,
          zones: [{ zone: 'europe-west4-a', onDemandUsd: 0.94, spotUsd: undefined }],
        },
        {
          region: 'us-central1',
          onDemandUsd: 0.85,
          spotUsd: 0.29,
          estimated: false,
          zones: [
            { zone: 'us-central1-a', onDemandUsd: 0.85, spotUsd: 0.31 },
            { zone: 'us-central1-b', onDemandUsd: 0.85, spotUsd: 0.29 },
          ],
        },
      ]);
    });
  });
});

test('a folder of several clouds updates all of them, or the named one', async () => {
  await withTempHome(async (home) => {
    const [from, dir] = [join(home, 'v8'), join(home, 'catalog')];
    for (const cloud of ['lambda', 'runpod']) {
      mkdirSync(join(from, cloud), { recursive: true });
      writeFileSync(join(from, cloud, 'vms.csv'), skypilotRows.join('\n'));
      utimesSync(join(from, cloud, 'vms.csv'), 1_770_000_000, 1_770_000_000);
    }
    const updated = await updateCatalog(request({ from: 'v8' }), context(dir, { cwd: home }));
    expect(updated.map(({ cloud, date }) => `${cloud} ${date}`)).toEqual(['lambda 2026-02-02', 'runpod 2026-02-02']);
    const one = await updateCatalog(request({ cloud: 'runpod', from }), context(dir));
    expect(one.map(({ cloud }) => cloud)).toEqual(['runpod']);
    const file = await updateCatalog(request({ from: join(from, 'lambda', 'vms.csv') }), context(dir));
    expect(file.map(({ cloud }) => cloud)).toEqual(['lambda']);
    const flat = await updateCatalog(request({ cloud: 'mine', from: join(from, 'lambda') }), context(dir));
    expect(flat.map(({ cloud }) => cloud)).toEqual(['mine']);
  });
});

const badRow = 'n2,,,two,16,,1,,east,,';

test('up to 10% invalid rows are counted and skipped; more refuse the list', async () => {
  const files = {
    '/one/gcp/vms.csv': [...skypilotRows, badRow].join('\n'),
    '/two/gcp/vms.csv': [...skypilotRows, badRow, badRow].join('\n'),
  };
  await withServer(files, async (url) => {
    await withTempHome(async (dir) => {
      const [update] = await updateCatalog(request({ from: `${url}/one/gcp/vms.csv` }), context(dir));
      expect(update).toMatchObject({ cloud: 'gcp', badRows: 1, prices: 9 });
      const refused = updateCatalog(request({ from: `${url}/two/gcp/vms.csv` }), context(dir));
      await expect(refused).rejects.toMatchObject({ code: 'SVC_CATALOG', message: expect.stringContaining('2 of 11 rows cannot be read') });
    });
  });
});

test.for<readonly [string, Files]>([
  ['cannot be read', { '/gcp/vms.csv': [skypilotHeader, 'a,,,x,1,,1,,east,,', 'b,,,1,1,,1,,east,,'].join('\n') }],
  ["has no column 'InstanceType'", { '/gcp/vms.csv': '<html>\nsign in\n</html>' }],
  ['has no machine of gcp', { '/gcp/vms.csv': `${skypilotHeader}\n` }],
  ['answered with HTTP 404', {}],
  ['cannot be read', { '/gcp/vms.csv': 'BREAK' }],
])('an invalid list leaves the old table unchanged: %s', async ([what, files]) => {
  await withServer(files, async (url) => {
    await withTempHome(async (dir) => {
      writeFileSync(join(dir, 'gcp.csv'), 'the old one');
      const updating = updateCatalog(request({ cloud: 'gcp', from: url }), context(dir));
      await expect(updating).rejects.toMatchObject({ code: 'SVC_CATALOG', message: expect.stringContaining(what) });
      expect(readFileSync(join(dir, 'gcp.csv'), 'utf8')).toBe('the old one');
    });
  });
});

test('secret parts of an address are neither shown nor stored', async () => {
  await withServer({ '/gcp/vms.csv': skypilotRows.join('\n') }, async (url, requests) => {
    await withTempHome(async (dir) => {
      const reported: string[] = [];
      const from = `${url}/gcp/vms.csv?token=s3cret#part`;
      const updates = await updateCatalog(request({ cloud: 'gcp', from }), context(dir, { onProgress: (text) => reported.push(text) }));
      expect(requests).toEqual(['/gcp/vms.csv?token=s3cret']);
      expect(`${JSON.stringify(updates)}${reported.join('')}${readFileSync(join(dir, 'gcp.csv'), 'utf8')}`).not.toContain('s3cret');
      const failing = updateCatalog(request({ cloud: 'gcp', from: `${url}/none.csv?token=s3cret` }), context(dir));
      await expect(failing).rejects.toMatchObject({ message: expect.not.stringContaining('s3cret') });
    });
  });
});

test('an ambiguous request is refused with the missing argument', async () => {
  await withTempHome(async (dir) => {
    const failure = async (change: Partial<CatalogUpdateRequest>): Promise<string> =>
      updateCatalog(request(change), context(dir)).then(
        () => 'updated',
        (error: unknown) => (error instanceof Error ? error.message : ''),
      );
    mkdirSync(join(dir, 'empty'));
    expect(await failure({ cloud: 'gcp' })).toBe("svc knows no public price list of gcp's own.");
    expect(await failure({ from: 'http://127.0.0.1:9/x' })).toBe('It is not said of which cloud the list is.');
    expect(await failure({ from: 'nowhere' })).toBe(`There is no folder or file ${join(dir, 'nowhere')}.`);
    expect(await failure({ cloud: 'gcp', from: 'empty' })).toBe(`The folder ${join(dir, 'empty')} has neither vms.csv nor gcp/vms.csv.`);
    expect(await failure({ cloud: '../x', from: 'empty' })).toBe("'../x' is not the name of a cloud.");
    expect(existsSync(join(dir, 'gcp.csv'))).toBe(false);
  });
});

// ---- AWS's own list, in the form in which it is published.

const awsColumns = [
  'SKU',
  'TermType',
  'Unit',
  'PricePerUnit',
  'Currency',
  'Location Type',
  'Instance Type',
  'vCPU',
  'Physical Processor',
  'Memory',
  'GPU',
  'Tenancy',
  'Operating System',
  'CapacityStatus',
  'Pre Installed S/W',
  'Region Code',
];
const awsRow = (change: Readonly<Record<string, string>>): string => {
  const row: Readonly<Record<string, string>> = {
    SKU: 'ABC',
    TermType: 'OnDemand',
    Unit: 'Hrs',
    PricePerUnit: '0.1920000000',
    Currency: 'USD',
    'Location Type': 'AWS Region',
    'Instance Type': 'm6i.xlarge',
    vCPU: '4',
    'Physical Processor': 'Intel Xeon 8375C',
    Memory: '16 GiB',
    Tenancy: 'Shared',
    'Operating System': 'Linux',
    CapacityStatus: 'Used',
    'Pre Installed S/W': 'NA',
    'Region Code': 'us-east-1',
    ...change,
  };
  return awsColumns.map((column) => `"${row[column] ?? ''}"`).join(',');
};
const awsList = (date: string, rows: readonly string[]): string =>
  [
    '"FormatVersion","v1.0"',
    '"Disclaimer","for information"',
    `"Publication Date","${date}T18:00:00Z"`,
    '"Version","20260119180000"',
    '"OfferCode","AmazonEC2"',
    awsColumns.map((column) => `"${column}"`).join(','),
    ...rows,
  ].join('\n');

const index = '/offers/v1.0/aws/AmazonEC2/current/region_index.json';
const regionUrl = (region: string): string => `/offers/v1.0/aws/AmazonEC2/20260119/${region}/index`;
const regionIndex = JSON.stringify({
  regions: Object.fromEntries(
    ['us-east-1', 'eu-west-1', 'us-gov-west-1', 'us-east-1-atl-1', 'cn-north-1'].map((region) => [
      region,
      { regionCode: region, currentVersionUrl: `${regionUrl(region)}.json` },
    ]),
  ),
});
const awsFiles: Files = {
  [index]: regionIndex,
  [`${regionUrl('us-east-1')}.csv`]: awsList('2026-01-20', [
    awsRow({}),
    awsRow({ TermType: 'Reserved', PricePerUnit: '0.05' }),
    awsRow({ 'Operating System': 'Windows', PricePerUnit: '0.4' }),
    awsRow({ Tenancy: 'Dedicated', PricePerUnit: '0.3' }),
    awsRow({ 'Pre Installed S/W': 'SQL Std', PricePerUnit: '0.7' }),
    awsRow({ CapacityStatus: 'UnusedCapacityReservation', PricePerUnit: '0.193' }),
    awsRow({ 'Location Type': 'AWS Local Zone', PricePerUnit: '0.24' }),
    awsRow({ PricePerUnit: '0.0000000000', 'Instance Type': 'm9.free' }),
    awsRow({
      'Instance Type': 'm7g.large',
      'Physical Processor': 'AWS Graviton3 Processor',
      vCPU: '2',
      Memory: '8 GiB',
      PricePerUnit: '0.0816',
    }),
    awsRow({ 'Instance Type': 'g6.xlarge', GPU: '1', PricePerUnit: '0.8048' }),
    awsRow({ 'Instance Type': 'g6.99xlarge', GPU: '16', vCPU: '384', Memory: '1,536 GiB', PricePerUnit: '26.7' }),
    awsRow({ 'Instance Type': 'z9.xlarge', GPU: '1', PricePerUnit: '9' }),
    awsRow({ 'Instance Type': 'm6i.large', Memory: 'lots', PricePerUnit: '0.096' }),
    ...['2', '4', '8', '12', '16', '24', '32', '48'].map((size) => awsRow({ 'Instance Type': `m6i.${size}xlarge` })),
  ]),
  [`${regionUrl('eu-west-1')}.csv`]: awsList('2026-01-19', [awsRow({ 'Region Code': 'eu-west-1', PricePerUnit: '0.214' })]),
};

test('the AWS list is read by region: on-demand machines with known accelerators', async () => {
  await withServer(awsFiles, async (awsUrl) => {
    await withTempHome(async (dir) => {
      const reported: string[] = [];
      const [update] = await updateCatalog(request({}), context(dir, { awsUrl, onProgress: (text) => reported.push(text) }));
      expect(reported).toEqual(['Reading prices of aws in eu-west-1 (1 of 2)', 'Reading prices of aws in us-east-1 (2 of 2)']);
      expect(update).toMatchObject({ cloud: 'aws', date: '2026-01-19', types: 12, regions: 2, badRows: 1, skippedRows: 1 });
      const table = await new PriceTables(dir).table('aws');
      const of = (name: string) => table?.types.find((type) => type.name === name);
      expect(of('m6i.xlarge')?.regions.map(({ region, onDemandUsd, spotUsd }) => [region, onDemandUsd, spotUsd])).toEqual([
        ['eu-west-1', 0.214, undefined],
        ['us-east-1', 0.192, undefined],
      ]);
      expect(of('m7g.large')?.architecture).toBe('arm64');
      expect(of('g6.xlarge')?.accelerator).toEqual({ name: 'L4', count: 1, memoryGb: 24 });
      expect(of('g6.99xlarge')).toMatchObject({ memoryGb: 1536, accelerator: { name: 'L4', count: 16 } });
      expect([of('z9.xlarge'), of('m9.free')]).toEqual([undefined, undefined]);
    });
  });
});

test('only the requested regions are read, and the table records that', async () => {
  await withServer(awsFiles, async (awsUrl, requests) => {
    await withTempHome(async (dir) => {
      await updateCatalog(request({ cloud: 'aws', regions: ['eu-west-1'] }), context(dir, { awsUrl }));
      expect(requests).toEqual([index, `${regionUrl('eu-west-1')}.csv`]);
      expect((await new PriceTables(dir).table('aws'))?.partial).toBe('only eu-west-1');
      const wrong = updateCatalog(request({ cloud: 'aws', regions: ['eu-west-9'] }), context(dir, { awsUrl }));
      await expect(wrong).rejects.toMatchObject({ code: 'SVC_CATALOG', message: 'AWS publishes no prices for: eu-west-9.' });
    });
  });
});

test.for<readonly [string, Files]>([
  ['no list of regions', { [index]: 'oops' }],
  ['no list of regions', { [index]: '{"regions":{}}' }],
  ['is no list of prices of AWS', { ...awsFiles, [`${regionUrl('us-east-1')}.csv`]: 'a,b\n1,2\n' }],
])('an invalid AWS response changes nothing: %s', async ([what, files]) => {
  await withServer(files, async (awsUrl) => {
    await withTempHome(async (dir) => {
      const updating = updateCatalog(request({}), context(dir, { awsUrl }));
      await expect(updating).rejects.toMatchObject({ code: 'SVC_CATALOG', message: expect.stringContaining(what) });
      expect(existsSync(join(dir, 'aws.csv'))).toBe(false);
    });
  });
});

test('Ctrl-C ends an update without changes', async () => {
  await withServer({ '/gcp/vms.csv': skypilotRows.join('\n') }, async (url) => {
    await withTempHome(async (dir) => {
      const updating = updateCatalog(request({ cloud: 'gcp', from: url }), context(dir, { signal: AbortSignal.abort() }));
      await expect(updating).rejects.toMatchObject({ code: 'SVC_CATALOG' });
      expect(existsSync(join(dir, 'gcp.csv'))).toBe(false);
    });
  });
});
