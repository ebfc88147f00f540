import { canonicalAccelerator } from '../domain/accelerators.ts';
import { SvcError } from '../shared/errors.ts';
import { CsvColumns, parseCsvLine, readAmount } from './csv.ts';
import type { InstanceType, PriceTable, RegionPrice, ZonePrice } from './price-table.ts';

const header = 'type,vcpus,memory_gib,accelerator,count,accelerator_gb,arch,prices';

/** Formats a table for `parseTable`: `# name: value` lines, then a line per type with all its prices. */
export function formatTable(table: PriceTable): string {
  const facts = [
    ['cloud', table.cloud],
    ['date', table.date],
    ['source', table.source],
    ...(table.partial === undefined ? [] : [['partial', table.partial]]),
  ].map(([name, value]) => `# ${name}: ${String(value).replaceAll(/\s+/g, ' ')}`);
  const rows = table.types.map(({ name, cpus, memoryGb, accelerator, architecture, regions }) =>
    [
      name,
      cpus,
      memoryGb,
      accelerator?.name ?? '',
      accelerator?.count ?? '',
      accelerator?.memoryGb ?? '',
      architecture,
      regions.flatMap(formatRegion).join(' '),
    ].join(','),
  );
  return [...facts, header, ...rows, ''].join('\n');
}

function formatRegion({ region, onDemandUsd, spotUsd, estimated, zones }: RegionPrice): readonly string[] {
  return [
    `${region}=${estimated ? '~' : ''}${formatPrice(onDemandUsd, spotUsd)}`,
    ...zones.map(
      (zone) => `${region}/${zone.zone}=${formatPrice(zone.onDemandUsd === onDemandUsd ? undefined : zone.onDemandUsd, zone.spotUsd)}`,
    ),
  ];
}

function formatPrice(onDemand: number | undefined, spot: number | undefined): string {
  return `${onDemand ?? ''}${spot === undefined ? '' : `|${spot}`}`;
}

/** Throws SVC_CATALOG with the invalid line. `name` is the file's, for the message. */
export function parseTable(text: string, name: string): PriceTable {
  const facts = new Map<string, string>();
  const types: InstanceType[] = [];
  let columns: CsvColumns | undefined;
  for (const [index, line] of text.split('\n').entries()) {
    const fail = (what: string): never => {
      throw new SvcError('SVC_CATALOG', `${name} is no table of prices: line ${index + 1} ${what}.`);
    };
    if (line.startsWith('#')) {
      const [, fact, value] = /^# ([a-z]+): (.*)$/.exec(line) ?? [];
      if (fact !== undefined && value !== undefined && fact !== 'note') facts.set(fact, value.trim());
    } else if (columns === undefined) {
      columns = new CsvColumns(line);
      const missing = columns.missing(header.split(','));
      if (missing.length > 0) fail(`has no column '${missing.join(', ')}'`);
    } else if (line.trim() !== '') {
      types.push(parseType(columns, parseCsvLine(line)) ?? fail('cannot be read'));
    }
  }
  const [cloud, date] = [facts.get('cloud'), facts.get('date')];
  if (cloud === undefined || date === undefined || !/^\d{4}-\d\d-\d\d$/.test(date)) {
    throw new SvcError('SVC_CATALOG', `${name} is no table of prices: it does not say of which cloud it is and of which date.`);
  }
  return { cloud, date, source: facts.get('source') ?? 'unknown', partial: facts.get('partial'), types };
}

function parseType(columns: CsvColumns, row: readonly string[]): InstanceType | undefined {
  const [name, accelerator] = [columns.field(row, 'type'), columns.field(row, 'accelerator')];
  const [cpus, memoryGb, count] = [columns.amount(row, 'vcpus'), columns.amount(row, 'memory_gib'), columns.amount(row, 'count')];
  const architecture = columns.field(row, 'arch');
  const regions = parsePrices(columns.field(row, 'prices'));
  if (name === '' || cpus === undefined || memoryGb === undefined || regions === undefined) return undefined;
  if ((accelerator === '') !== (count === undefined) || (architecture !== 'x86_64' && architecture !== 'arm64')) return undefined;
  return {
    name,
    cpus,
    memoryGb,
    accelerator:
      count === undefined
        ? undefined
        : { name: canonicalAccelerator(accelerator) ?? accelerator, count, memoryGb: columns.amount(row, 'accelerator_gb') },
    architecture,
    regions,
  };
}

/** `us-east-1=1.2|0.4 us-east-1/use1-az1=|0.4`: on demand, and spot after the bar; `~` marks a computed price. */
function parsePrices(text: string): readonly RegionPrice[] | undefined {
  const regions = new Map<string, RegionPrice & { readonly zones: ZonePrice[] }>();
  for (const cell of text.split(' ').filter((one) => one !== '')) {
    const [, region = '', zone, mark, onDemand = '', spot] = /^([^/=]+)(?:\/([^=]+))?=(~?)([\d.e-]*)(?:\|([\d.e-]+))?$/.exec(cell) ?? [];
    const [onDemandUsd, spotUsd] = [readAmount(onDemand), readAmount(spot ?? '')];
    const unread = (onDemand !== '' && onDemandUsd === undefined) || (spot !== undefined && spotUsd === undefined);
    if (region === '' || unread) return undefined;
    if (zone === undefined) regions.set(region, { region, onDemandUsd, spotUsd, estimated: mark === '~', zones: [] });
    else {
      const whole = regions.get(region);
      if (whole === undefined) return undefined;
      whole.zones.push({ zone, onDemandUsd: onDemandUsd ?? whole.onDemandUsd, spotUsd });
    }
  }
  return [...regions.values()];
}
