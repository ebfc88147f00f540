import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { writeFileAtomic } from '../shared/system/files.ts';
import { SvcError } from '../shared/errors.ts';
import { readAwsPriceList, type AwsPriceListOptions } from './aws-price-list.ts';
import { countPrices, regionsOf, type PriceTable } from './price-table.ts';
import { PriceTables, tablePath } from './price-tables.ts';
import { readSkypilotCatalog, type ReadPrices } from './skypilot-catalog.ts';
import { formatTable } from './table-format.ts';
import { isUrl, openText, shownLocation } from './text-source.ts';

/** The tables to update, and their source. */
export interface CatalogUpdateRequest {
  /** Undefined: all clouds in `from`; without `from`, the only cloud whose own price list is known. */
  readonly cloud: string | undefined;
  /** URL, folder or file in SkyPilot's format; undefined: the cloud's own public list. */
  readonly from: string | undefined;
  /** For a cloud's own list, the only regions to read; undefined: all. */
  readonly regions: readonly string[] | undefined;
}

/** Dependencies of an update. */
export interface CatalogUpdateContext {
  readonly catalogDir: string;
  /** Base of relative paths. */
  readonly cwd: string;
  /** ms since the epoch. */
  readonly now: number;
  readonly signal: AbortSignal;
  readonly onProgress?: (text: string) => void;
  readonly awsUrl?: string | undefined;
}

interface CatalogUpdate {
  readonly cloud: string;
  readonly path: string;
  readonly source: string;
  readonly date: string;
  readonly types: number;
  readonly regions: number;
  readonly prices: number;
  /** Unreadable rows, and rows without anything that svc can use. */
  readonly badRows: number;
  readonly skippedRows: number;
}

/** With more broken rows than this percentage, a list counts as another format. */
const mostBadPercent = 10;

/**
 * Replaces price tables by newer ones, each atomically. Throws SVC_CATALOG for a list that is invalid or cannot be
 * downloaded; its old table stays. Tables that were replaced before stay replaced.
 */
export async function updateCatalog(request: CatalogUpdateRequest, context: CatalogUpdateContext): Promise<readonly CatalogUpdate[]> {
  if (request.from === undefined) return [await updateFromAws(request, context)];
  const updates: CatalogUpdate[] = [];
  for (const { cloud, location } of locate(request.from, request.cloud, context.cwd)) {
    context.onProgress?.(`Reading prices of ${cloud} from ${shownLocation(location)}`);
    const { lines, modifiedAt } = await openText(location, context);
    const read = await readSkypilotCatalog(lines, shownLocation(location));
    const source = `SkyPilot's catalogue, ${shownLocation(location)}`;
    updates.push(replaceTable({ cloud, source, date: isoDate(modifiedAt ?? context.now), partial: undefined }, read, context));
  }
  return updates;
}

async function updateFromAws({ cloud = 'aws', regions }: CatalogUpdateRequest, context: CatalogUpdateContext): Promise<CatalogUpdate> {
  if (cloud !== 'aws') {
    throw new SvcError('SVC_CATALOG', `svc knows no public price list of ${cloud}'s own.`, {
      hint: `Run: svc catalog update ${cloud} --from URL|FOLDER; with a catalogue in SkyPilot's format`,
    });
  }
  // Built-in, because an updated table may lack the names of accelerators.
  const known = (await new PriceTables(context.catalogDir).builtIn(cloud))?.types ?? [];
  const options: AwsPriceListOptions = {
    regions,
    known,
    baseUrl: context.awsUrl,
    signal: context.signal,
    onRegion: (region, index, count) => context.onProgress?.(`Reading prices of aws in ${region} (${index + 1} of ${count})`),
  };
  const read = await readAwsPriceList(options);
  const partial = regions === undefined ? undefined : `only ${read.regions.join(', ')}`;
  return replaceTable({ cloud, source: "AWS's public price list, without spot prices", date: read.date, partial }, read, context);
}

function replaceTable(facts: Omit<PriceTable, 'types'>, read: ReadPrices, { catalogDir }: CatalogUpdateContext): CatalogUpdate {
  const { types, badRows, skippedRows } = read;
  const table: PriceTable = { ...facts, types };
  const prices = countPrices(table);
  if (prices === 0) throw new SvcError('SVC_CATALOG', `${facts.source} has no machine of ${facts.cloud} that svc can use.`, leftAlone);
  if (badRows * 100 > (prices + badRows) * mostBadPercent) {
    throw new SvcError('SVC_CATALOG', `${facts.source}: ${badRows} of ${prices + badRows} rows cannot be read.`, leftAlone);
  }
  const path = tablePath(catalogDir, facts.cloud);
  writeFileAtomic(path, formatTable(table));
  const { cloud, source, date } = facts;
  return { cloud, path, source, date, types: types.length, regions: regionsOf(table).length, prices, badRows, skippedRows };
}

const leftAlone = { hint: 'Nothing was changed. Check that this is the list you mean.' };

interface Location {
  readonly cloud: string;
  readonly location: string;
}

const file = 'vms.csv';

function locate(from: string, cloud: string | undefined, cwd: string): readonly Location[] {
  if (isUrl(from)) {
    const path = URL.canParse(from) ? new URL(from).pathname : '';
    if (path.endsWith('.csv')) return [{ cloud: checked(cloud ?? basename(dirname(path)), from), location: from }];
    if (cloud === undefined) throw new SvcError('SVC_CATALOG', 'It is not said of which cloud the list is.', nameCloud(from));
    const url = new URL(from);
    url.pathname = `${url.pathname.replace(/\/$/, '')}/${checked(cloud, from)}/${file}`;
    return [{ cloud, location: url.href }];
  }
  const path = resolve(cwd, from);
  const facts = statSync(path, { throwIfNoEntry: false });
  if (facts === undefined) throw new SvcError('SVC_CATALOG', `There is no folder or file ${path}.`, { hint: 'Check the path.' });
  if (!facts.isDirectory()) return [{ cloud: checked(cloud ?? basename(dirname(path)), from), location: path }];
  const has = (...parts: readonly string[]): boolean => statSync(join(path, ...parts), { throwIfNoEntry: false })?.isFile() === true;
  if (cloud !== undefined && has(checked(cloud, from), file)) return [{ cloud, location: join(path, cloud, file) }];
  if (has(file)) return [{ cloud: checked(cloud ?? basename(path), from), location: join(path, file) }];
  const found = readdirSync(path).filter((name) => cloudName.test(name) && has(name, file));
  if (cloud === undefined && found.length > 0) return found.toSorted().map((name) => ({ cloud: name, location: join(path, name, file) }));
  const expected = cloud === undefined ? `CLOUD/${file}` : `${cloud}/${file}`;
  throw new SvcError('SVC_CATALOG', `The folder ${path} has neither ${file} nor ${expected}.`, {
    hint: found.length > 0 ? `It has lists of: ${found.join(', ')}` : "Give the folder of SkyPilot's catalogue that has CLOUD/vms.csv.",
  });
}

const cloudName = /^[a-z0-9][a-z0-9-]*$/;

function checked(cloud: string, from: string): string {
  if (cloudName.test(cloud)) return cloud;
  throw new SvcError('SVC_CATALOG', `'${cloud}' is not the name of a cloud.`, nameCloud(from));
}

function nameCloud(from: string): { readonly hint: string } {
  return { hint: `Name it: svc catalog update CLOUD --from ${shownLocation(from)}` };
}

function isoDate(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
