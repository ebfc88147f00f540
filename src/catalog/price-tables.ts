import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { hasErrno, messageOf, SvcError } from '../shared/errors.ts';
import { programFile } from '../shared/program-files.ts';
import { noDiskPrices, parseDiskPrices, type DiskPrices } from './disk-prices.ts';
import type { PriceTable } from './price-table.ts';
import { parseTable } from './table-format.ts';

const diskEnding = '-disks.csv';

/** Safe in file names. */
const cloudName = /^[a-z0-9][a-z0-9-]*$/;

interface Loaded {
  readonly mtimeMs: number;
  readonly size: number;
  readonly table: PriceTable;
}

/**
 * The price tables that `svc catalog update` wrote to `catalogDir`, else those that ship with svc. Each file is read
 * once per process, and again when it has changed.
 */
export class PriceTables {
  readonly #catalogDir: string;
  readonly #builtInDir: string;
  readonly #loaded = new Map<string, Loaded>();

  constructor(catalogDir: string, builtInDir = programFile('catalog')) {
    this.#catalogDir = catalogDir;
    this.#builtInDir = builtInDir;
  }

  /** Clouds with a table, in alphabetical order. */
  async clouds(): Promise<readonly string[]> {
    const files = (await Promise.all([this.#catalogDir, this.#builtInDir].map(filesIn))).flat();
    const tables = files.filter((file) => file.endsWith('.csv') && !file.endsWith(diskEnding));
    return [...new Set(tables.map((file) => basename(file, '.csv')))].filter((name) => cloudName.test(name)).toSorted();
  }

  /** Undefined when there is none. Throws SVC_CATALOG for an invalid file. */
  async table(cloud: string): Promise<PriceTable | undefined> {
    if (!cloudName.test(cloud)) return undefined;
    return (await this.#load(tablePath(this.#catalogDir, cloud))) ?? this.builtIn(cloud);
  }

  /** The table that ships with svc, regardless of updates. */
  async builtIn(cloud: string): Promise<PriceTable | undefined> {
    return cloudName.test(cloud) ? this.#load(tablePath(this.#builtInDir, cloud)) : undefined;
  }

  /** Disks have no prices where none are known. */
  async disks(cloud: string): Promise<DiskPrices> {
    if (!cloudName.test(cloud)) return noDiskPrices;
    const path = join(this.#builtInDir, `${cloud}${diskEnding}`);
    const text = await readIfExists(path);
    return text === undefined ? noDiskPrices : parseDiskPrices(text, path);
  }

  async #load(path: string): Promise<PriceTable | undefined> {
    const facts = await stat(path).catch((error: unknown) => unlessMissing(error, path));
    if (facts === undefined) return undefined;
    const { mtimeMs, size } = facts;
    const before = this.#loaded.get(path);
    if (before?.mtimeMs === mtimeMs && before.size === size) return before.table;
    const text = await readIfExists(path);
    if (text === undefined) return undefined;
    const table = parseTable(text, path);
    this.#loaded.set(path, { mtimeMs, size, table });
    return table;
  }
}

/** Path of a cloud's table in a folder of tables. */
export function tablePath(dir: string, cloud: string): string {
  return join(dir, `${cloud}.csv`);
}

async function filesIn(dir: string): Promise<readonly string[]> {
  return readdir(dir).catch((error: unknown) => unlessMissing(error, dir) ?? []);
}

async function readIfExists(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error: unknown) => unlessMissing(error, path));
}

function unlessMissing(error: unknown, path: string): undefined {
  if (hasErrno(error, 'ENOENT')) return undefined;
  throw new SvcError('SVC_CATALOG', `${path} cannot be read: ${messageOf(error)}`, { cause: error });
}
