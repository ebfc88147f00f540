import { acceleratorMemoryGb, canonicalAccelerator } from '../domain/accelerators.ts';
import { SvcError } from '../shared/errors.ts';
import { CsvColumns, parseCsvLine } from './csv.ts';
import { TableBuilder, type PriceRow, type InstanceType } from './price-table.ts';

/** Prices of a list, and unused rows. */
export interface ReadPrices {
  readonly types: readonly InstanceType[];
  readonly badRows: number;
  /** Valid, but nothing that can be rented by itself. */
  readonly skippedRows: number;
}

const columnsNeeded = ['InstanceType', 'AcceleratorName', 'AcceleratorCount', 'vCPUs', 'MemoryGiB', 'Price', 'Region'];

const mibPerGb = 1_024;

/** A local zone (`usw2-lax1-az1`, unlike `use1-az1`): needs an opt-in, and the list wrongly has the region's prices. */
const localZone = /^[a-z0-9]+-[a-z]{3}\d-az\d$/;

/**
 * Reads a cloud's `vms.csv` of SkyPilot's catalogue, one row per machine type and zone. Skips accelerators without a
 * machine (as Google sells them), local zones and Macs. Throws SVC_CATALOG for any other text.
 */
export async function readSkypilotCatalog(lines: AsyncIterable<string>, name: string): Promise<ReadPrices> {
  const builder = new TableBuilder();
  let columns: CsvColumns | undefined;
  let [badRows, skippedRows] = [0, 0];
  for await (const line of lines) {
    if (columns === undefined) {
      columns = new CsvColumns(line);
      const missing = columns.missing(columnsNeeded);
      if (missing.length > 0) {
        const message = `${name} is no table of machines in SkyPilot's format: it has no column '${missing.join("', '")}'.`;
        throw new SvcError('SVC_CATALOG', message, { hint: 'Give the vms.csv of a cloud, or the folder that has CLOUD/vms.csv.' });
      }
    } else if (line.trim() !== '') {
      const row = readRow(columns, parseCsvLine(line));
      if (row === 'bad') badRows += 1;
      else if (row === 'skipped') skippedRows += 1;
      else builder.add(row);
    }
  }
  return { types: builder.types(), badRows, skippedRows };
}

function readRow(columns: CsvColumns, fields: readonly string[]): PriceRow | 'bad' | 'skipped' {
  const text = (column: string): string => columns.field(fields, column);
  const amount = (column: string): number | undefined => columns.amount(fields, column);
  const [name, region, zone, arch] = [text('InstanceType'), text('Region'), text('AvailabilityZone'), text('Arch')];
  if (name === '' && text('AcceleratorName') !== '') return 'skipped';
  if (localZone.test(zone) || arch.endsWith('_mac')) return 'skipped';
  const [cpus, memoryGb] = [amount('vCPUs'), amount('MemoryGiB')];
  const prices = ['Price', 'SpotPrice'].map(text);
  const unread = prices.some((price, index) => price !== '' && amount(index === 0 ? 'Price' : 'SpotPrice') === undefined);
  const broken = [name, region, zone].some((part) => /[\s=|/,~#]/.test(part));
  const accelerator = readAccelerator(columns, fields);
  if (name === '' || region === '' || broken || cpus === undefined || memoryGb === undefined || unread || accelerator === 'bad')
    return 'bad';
  return {
    name,
    cpus,
    memoryGb,
    accelerator,
    architecture: arch.startsWith('arm64') ? 'arm64' : 'x86_64',
    region,
    zone: zone === '' ? undefined : zone,
    onDemandUsd: amount('Price'),
    spotUsd: amount('SpotPrice'),
  };
}

function readAccelerator(columns: CsvColumns, fields: readonly string[]): InstanceType['accelerator'] | 'bad' {
  const given = columns.field(fields, 'AcceleratorName');
  if (given === '') return undefined;
  const count = columns.amount(fields, 'AcceleratorCount');
  if (count === undefined || count === 0 || given.includes(',')) return 'bad';
  const name = canonicalAccelerator(given) ?? given;
  const mib = /'SizeInMiB': (\d+)/.exec(columns.field(fields, 'GpuInfo'))?.[1];
  return { name, count, memoryGb: acceleratorMemoryGb(name) ?? (mib === undefined ? undefined : Math.round(Number(mib) / mibPerGb)) };
}
