import type { Selectable } from 'kysely';
import type { Driver, Writer } from './driver.ts';
import type { EventRecord, NewEvent } from '../domain/records.ts';
import type { EventTable } from './schema.ts';
import type { EventRepository } from './store.ts';

/** The history of events in a database. */
export function eventRepository(driver: Driver): EventRepository {
  const { db } = driver;
  return {
    append: (event) => driver.write((writer) => insertEvent(writer, event)),

    knows: (subjectKey, replicaId) => hasEvent(db, subjectKey, replicaId),

    async list({ subject, subjectKey, after, limit }) {
      let query = db.selectFrom('events').selectAll().where('subject', '=', subject).orderBy('id');
      query = query.where('subject_key', '=', (compare) =>
        subjectKey === undefined
          ? compare.selectFrom('events').select('subject_key').where('subject', '=', subject).orderBy('id', 'desc').limit(1)
          : compare.val(subjectKey),
      );
      if (after !== undefined) query = query.where('id', '>', after);
      if (limit !== undefined) query = query.limit(limit);
      return (await query.execute()).map(toRecord);
    },

    pruneGone: ({ before, keep, except }) =>
      driver.write(async (writer) => {
        const living = [
          ...(await writer.selectFrom('services').select('key').execute()),
          ...(await writer.selectFrom('clusters').select('key').execute()),
        ].map(({ key }) => key);
        // Never empty: not every database accepts an empty list.
        const kept = [...new Set([...living, ...except, ''])];
        const oldest = await writer
          .selectFrom('events')
          .select('id')
          .where('subject_key', 'not in', kept)
          .orderBy('id', 'desc')
          .offset(keep)
          .limit(1)
          .executeTakeFirst();
        const { numDeletedRows } = await writer
          .deleteFrom('events')
          .where('subject_key', 'not in', kept)
          .where((compare) => compare.or([compare('at', '<', before), compare('id', '<=', oldest?.id ?? 0)]))
          .executeTakeFirstOrThrow();
        return Number(numDeletedRows);
      }),
  };
}

/** See `EventRepository.knows`. */
export async function hasEvent(reader: Driver['db'] | Writer, subjectKey: string, replicaId?: number): Promise<boolean> {
  let query = reader.selectFrom('events').select('id').where('subject_key', '=', subjectKey).limit(1);
  if (replicaId !== undefined) query = query.where('replica_id', '=', replicaId);
  return (await query.executeTakeFirst()) !== undefined;
}

/** Adds an event in a transaction, together with the change that it describes. */
export async function insertEvent(writer: Writer, event: NewEvent): Promise<void> {
  await writer
    .insertInto('events')
    .values({
      at: event.at,
      subject: event.subject,
      subject_key: event.subjectKey,
      replica_id: event.replicaId,
      from_state: event.from,
      to_state: event.to,
      cause: event.cause,
      message: event.message,
    })
    .execute();
}

function toRecord(row: Selectable<EventTable>): EventRecord {
  return {
    id: row.id,
    at: row.at,
    subject: row.subject,
    subjectKey: row.subject_key,
    replicaId: row.replica_id,
    from: row.from_state,
    to: row.to_state,
    cause: row.cause,
    message: row.message,
  };
}
