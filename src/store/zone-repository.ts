import { boundHistories, type ZoneHistories, type ZoneHistory } from '../domain/spot/zone-history.ts';
import type { Driver, Writer } from './driver.ts';
import { fromJson, isZoneHistory, toJson } from './json-column.ts';
import type { ZoneRepository } from './store.ts';

/** Histories of spot zones, one row each. */
export function zoneRepository(driver: Driver): ZoneRepository {
  return {
    list: () => read(driver.db),
    change: (decide, now) =>
      driver.write(async (writer) => {
        const before = await read(writer);
        const after = boundHistories(decide(before), now);
        for (const [zone, history] of Object.entries(after)) if (history !== before[zone]) await put(writer, zone, history);
        const dropped = Object.keys(before).filter((zone) => after[zone] === undefined);
        if (dropped.length > 0) await writer.deleteFrom('zone_histories').where('zone', 'in', dropped).execute();
        return after;
      }),
  };
}

async function read(reader: Pick<Writer, 'selectFrom'>): Promise<ZoneHistories> {
  const rows = await reader.selectFrom('zone_histories').selectAll().execute();
  return Object.fromEntries(rows.map(({ zone, history }) => [zone, fromJson(history, 'zone_histories.history', isZoneHistory)]));
}

async function put(writer: Writer, zone: string, history: ZoneHistory): Promise<void> {
  const row = { history: toJson(history) };
  await writer
    .insertInto('zone_histories')
    .values({ zone, ...row })
    .onConflict((conflict) => conflict.column('zone').doUpdateSet(row))
    .execute();
}
