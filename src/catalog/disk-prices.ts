import type { Resources } from '../domain/task.ts';
import { SvcError } from '../shared/errors.ts';
import { CsvColumns, parseCsvLine } from './csv.ts';

type DiskTier = NonNullable<Resources['diskTier']>;

/** A cloud's disk for a tier. */
export interface DiskKind {
  /** The cloud's name, such as `gp3`. */
  readonly volume: string;
  /** Provisioned operations per second and MB/s; undefined: no such parameter. */
  readonly iops: number | undefined;
  readonly throughputMbs: number | undefined;
}

interface DiskRow extends DiskKind {
  readonly region: string;
  readonly tier: string;
  /** US dollars per month: per GB, and per operation and MB/s beyond the free ones. */
  readonly gbMonthUsd: number;
  readonly iopsMonthUsd: number;
  readonly freeIops: number;
  readonly mbsMonthUsd: number;
  readonly freeMbs: number;
}

const columnsNeeded = [
  'region',
  'tier',
  'volume',
  'iops',
  'throughput_mbs',
  'gb_month',
  'iops_month',
  'free_iops',
  'mbs_month',
  'free_mbs',
];
/** Hours in a month, as clouds convert prices. */
const hoursOfMonth = 730;

/** A cloud's disks and their prices. Default tier: `medium`. `best` is the highest, as in SkyPilot. */
export class DiskPrices {
  readonly #rows: readonly DiskRow[];

  constructor(rows: readonly DiskRow[]) {
    this.#rows = rows;
  }

  /** Undefined where the cloud has none for the tier. */
  kind(tier: DiskTier | undefined): DiskKind | undefined {
    const row = this.#rows.find((one) => one.tier === tierName(tier));
    return row === undefined ? undefined : { volume: row.volume, iops: row.iops, throughputMbs: row.throughputMbs };
  }

  /** US dollars per hour; 0: unknown. A region without its own prices uses those of `*`. */
  hourlyUsd(region: string, tier: DiskTier | undefined, sizeGb: number): number {
    const ofTier = this.#rows.filter((one) => one.tier === tierName(tier));
    const row = ofTier.find((one) => one.region === region) ?? ofTier.find((one) => one.region === '*');
    if (row === undefined) return 0;
    const iops = Math.max(0, (row.iops ?? 0) - row.freeIops) * row.iopsMonthUsd;
    const throughput = Math.max(0, (row.throughputMbs ?? 0) - row.freeMbs) * row.mbsMonthUsd;
    return (sizeGb * row.gbMonthUsd + iops + throughput) / hoursOfMonth;
  }
}

function tierName(tier: DiskTier | undefined): string {
  return tier === 'best' ? 'ultra' : (tier ?? 'medium');
}

/** For clouds without known disk prices. */
export const noDiskPrices = new DiskPrices([]);

/** Parses a table such as `catalog/aws-disks.csv`. Throws SVC_CATALOG for an invalid one. */
export function parseDiskPrices(text: string, name: string): DiskPrices {
  const [head = '', ...lines] = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  const columns = new CsvColumns(head);
  const rows = lines.map((line): DiskRow => {
    const row = parseCsvLine(line);
    const gbMonthUsd = columns.amount(row, 'gb_month');
    if (columns.missing(columnsNeeded).length > 0 || gbMonthUsd === undefined) {
      throw new SvcError('SVC_CATALOG', `${name} is no table of disks: '${line}' cannot be read.`);
    }
    return {
      region: columns.field(row, 'region'),
      tier: columns.field(row, 'tier'),
      volume: columns.field(row, 'volume'),
      iops: columns.amount(row, 'iops'),
      throughputMbs: columns.amount(row, 'throughput_mbs'),
      gbMonthUsd,
      iopsMonthUsd: columns.amount(row, 'iops_month') ?? 0,
      freeIops: columns.amount(row, 'free_iops') ?? 0,
      mbsMonthUsd: columns.amount(row, 'mbs_month') ?? 0,
      freeMbs: columns.amount(row, 'free_mbs') ?? 0,
    };
  });
  return new DiskPrices(rows);
}
