import { SvcError } from '../shared/errors.ts';
import { isObject, parseJson } from '../shared/json.ts';
import { CsvColumns, parseCsvLine, readAmount } from './csv.ts';
import { type InstanceType, TableBuilder, type PriceRow } from './price-table.ts';
import type { ReadPrices } from './skypilot-catalog.ts';
import { openText, readText, type FetchOptions } from './text-source.ts';

/** AWS publishes its prices here, without credentials. */
const awsPriceListUrl = 'https://pricing.us-east-1.amazonaws.com';
const regionIndex = '/offers/v1.0/aws/AmazonEC2/current/region_index.json';

/** China's and the government's regions are sold separately, and local zones are not regions. */
const commercialRegion = /^(?!cn-|us-gov|us-iso)[a-z]{2}-[a-z]+-\d$/;

const columnsNeeded = ['TermType', 'Instance Type', 'vCPU', 'Memory', 'PricePerUnit', 'Operating System', 'Tenancy', 'Region Code'];

/** `date`: the oldest list's, `YYYY-MM-DD`. */
interface AwsPrices extends ReadPrices {
  readonly date: string;
  readonly regions: readonly string[];
}

/** Options for reading AWS's list. */
export interface AwsPriceListOptions extends FetchOptions {
  /** Undefined: every commercial region. */
  readonly regions: readonly string[] | undefined;
  /** Types with known accelerators: the list has only their number. */
  readonly known: readonly InstanceType[];
  readonly baseUrl?: string | undefined;
  readonly onRegion?: (region: string, index: number, count: number) => void;
}

/**
 * Reads Linux on-demand prices from AWS's public list. A region's file has hundreds of MB, so it streams one region
 * after the other. The list has no spot prices and no names of accelerators. Types of families outside `known` are
 * skipped.
 */
export async function readAwsPriceList(options: AwsPriceListOptions): Promise<AwsPrices> {
  const { baseUrl = awsPriceListUrl, onRegion } = options;
  const files = await regionFiles(baseUrl, options);
  const builder = new TableBuilder();
  const total = { badRows: 0, skippedRows: 0 };
  const dates: string[] = [];
  for (const [index, [region, file]] of files.entries()) {
    onRegion?.(region, index, files.length);
    const read = await readRegion(new URL(file, baseUrl).href, options, builder);
    dates.push(read.date);
    total.badRows += read.badRows;
    total.skippedRows += read.skippedRows;
  }
  return { ...total, types: builder.types(), date: dates.toSorted()[0] ?? '', regions: files.map(([region]) => region) };
}

async function regionFiles(
  baseUrl: string,
  { regions, signal }: AwsPriceListOptions,
): Promise<readonly (readonly [region: string, file: string])[]> {
  const text = await readText(new URL(regionIndex, baseUrl).href, { signal });
  const index: unknown = parseJson(text);
  const entries = isObject(index) && isObject(index['regions']) ? Object.entries(index['regions']) : [];
  const files = new Map(
    entries.flatMap(([region, entry]): readonly (readonly [string, string])[] =>
      isObject(entry) && typeof entry['currentVersionUrl'] === 'string' && commercialRegion.test(region)
        ? [[region, entry['currentVersionUrl'].replace(/\.json$/, '.csv')]]
        : [],
    ),
  );
  if (files.size === 0) throw new SvcError('SVC_CATALOG', `${baseUrl} has no list of regions where AWS publishes its prices.`);
  const unknown = (regions ?? []).filter((region) => !files.has(region));
  if (unknown.length > 0) {
    throw new SvcError('SVC_CATALOG', `AWS publishes no prices for: ${unknown.join(', ')}.`, {
      hint: `Give some of: ${[...files.keys()].toSorted().join(', ')}`,
    });
  }
  return [...files].filter(([region]) => regions === undefined || regions.includes(region)).toSorted(([a], [b]) => a.localeCompare(b));
}

async function readRegion(
  url: string,
  { known, signal }: AwsPriceListOptions,
  builder: TableBuilder,
): Promise<{ readonly date: string; readonly badRows: number; readonly skippedRows: number }> {
  let columns: CsvColumns | undefined;
  let date = '';
  let [badRows, skippedRows] = [0, 0];
  for await (const line of (await openText(url, { signal })).lines) {
    if (columns === undefined) {
      // Lines of metadata precede the header.
      const [name = '', value = ''] = parseCsvLine(line);
      if (name === 'Publication Date') date = value.slice(0, 10);
      if (name === 'SKU') columns = new CsvColumns(line);
      // Only a few of millions of lines are relevant; parsing all would take minutes.
    } else if (line.includes('OnDemand') && line.includes('Linux') && line.includes('Shared')) {
      const row = readRow(columns, parseCsvLine(line), known);
      if (row === 'bad') badRows += 1;
      else if (row === 'skipped') skippedRows += 1;
      else if (row !== 'other') builder.add(row);
    }
  }
  const missing = columns?.missing(columnsNeeded) ?? columnsNeeded;
  if (missing.length > 0 || !/^\d{4}-\d\d-\d\d$/.test(date)) {
    throw new SvcError('SVC_CATALOG', `${url} is no list of prices of AWS: it has no '${missing[0] ?? 'Publication Date'}'.`);
  }
  return { date, badRows, skippedRows };
}

const required: readonly (readonly [column: string, value: string])[] = [
  ['TermType', 'OnDemand'],
  ['Operating System', 'Linux'],
  ['Tenancy', 'Shared'],
  ['Pre Installed S/W', 'NA'],
  ['CapacityStatus', 'Used'],
  ['Location Type', 'AWS Region'],
  ['Unit', 'Hrs'],
  ['Currency', 'USD'],
];

function readRow(columns: CsvColumns, fields: readonly string[], known: readonly InstanceType[]): PriceRow | 'bad' | 'skipped' | 'other' {
  const text = (column: string): string => columns.field(fields, column);
  if (required.some(([column, value]) => text(column) !== value && columns.missing([column]).length === 0)) return 'other';
  const onDemandUsd = columns.amount(fields, 'PricePerUnit');
  // Not sold by the hour.
  if (onDemandUsd === 0) return 'other';
  const [name, region] = [text('Instance Type'), text('Region Code')];
  const cpus = columns.amount(fields, 'vCPU');
  const memoryGb = readAmount(text('Memory').replace(/ GiB$/, '').replaceAll(',', ''));
  if (name === '' || region === '' || onDemandUsd === undefined || cpus === undefined || memoryGb === undefined) return 'bad';
  const accelerator = acceleratorOf(name, columns.amount(fields, 'GPU') ?? 0, known);
  if (accelerator === 'unknown') return 'skipped';
  const architecture = /graviton/i.test(text('Physical Processor')) ? 'arm64' : 'x86_64';
  return { name, cpus, memoryGb, accelerator, architecture, region, zone: undefined, onDemandUsd, spotUsd: undefined };
}

function acceleratorOf(name: string, count: number, known: readonly InstanceType[]): InstanceType['accelerator'] | 'unknown' {
  const itself = known.find((type) => type.name === name);
  if (itself !== undefined) return itself.accelerator;
  const family = name.slice(0, name.indexOf('.') + 1);
  const sibling = known.find((type) => type.name.startsWith(family) && type.accelerator !== undefined);
  if (count === 0) return sibling === undefined ? undefined : 'unknown';
  return sibling?.accelerator === undefined ? 'unknown' : { ...sibling.accelerator, count };
}
