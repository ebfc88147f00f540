import { Kysely, sql } from 'kysely';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import type { Driver, Writer } from '../driver.ts';
import type { Schema } from '../schema.ts';
import { lockNumber, readDatabaseUrl } from './database-url.ts';
import { postgresLink, type PostgresLink } from './node-postgres.ts';
import { postgresFailure } from './postgres-errors.ts';

/** First number of the writers' advisory lock: the letters s, v, c. Other programs use other numbers. */
const lockClass = 0x73_76_63;
/** How long to wait for an unreachable server, ms: as long as for SQLite's lock. */
const reconnectMs = 5_000;
/** How long to wait for transactions of other writers, ms. */
const lockTimeoutMs = 5_000;
const statementTimeoutMs = 7_000;
/**
 * The server ends a transaction that is idle for this long, ms: its writer was stopped or is lost, and others wait for
 * its lock. Shorter than their wait, and much shorter than a lease.
 */
const idleInTransactionMs = 3_000;

/** Opens the database at `url`. Any number of processes, on any number of machines, may have it open. */
export async function openPostgres(url: string, clock: Clock): Promise<Driver> {
  const address = readDatabaseUrl(url);
  const link = postgresLink(address, clock, reconnectMs);
  const bare = new Kysely<Schema>({ dialect: link.dialect });
  const writers = new Writers(bare, { link, clock, shown: address.shown, lock: lockNumber(address.schema) });
  try {
    await prepare(bare, writers, address);
  } catch (error) {
    await bare.destroy();
    throw error;
  }
  return {
    name: 'postgres',
    isShared: true,
    db: bare.withSchema(address.schema),
    write: (work) => writers.run((writer) => work(writer.withSchema(address.schema))),
    counterType: 'bigint',
    binaryType: 'bytea',
    selfCounting: (column) => column.generatedAlwaysAsIdentity().primaryKey(),
    close: () => bare.destroy(),
  };
}

/** Checks properties that cannot be changed later, and creates the schema. */
async function prepare(
  db: Kysely<Schema>,
  writers: Writers,
  { schema, shown }: { readonly schema: string; readonly shown: string },
): Promise<void> {
  const known = async (from: Kysely<Schema>): Promise<boolean> => {
    const found = await sql<{ encoding: string; has_schema: boolean }>`
      select current_setting('server_encoding') as encoding, exists (select 1 from pg_namespace where nspname = ${schema}) as has_schema
    `.execute(from);
    const [row] = found.rows;
    if (row?.encoding !== 'UTF8') {
      throw new SvcError(
        'SVC_DATABASE_REFUSED',
        `The state database at ${shown} keeps text as ${row?.encoding ?? 'nothing known'}, which cannot hold every character.`,
        {
          hint: "Make one with: create database NAME encoding 'UTF8' template template0",
        },
      );
    }
    return row.has_schema;
  };
  if (await known(db)) return;
  // Checked again under the lock, because two processes may arrive at once. `create schema if not exists` would need
  // the right to create even if the schema exists.
  await writers.run(async (writer) => {
    if (!(await known(writer))) await writer.schema.createSchema(schema).execute();
  });
}

interface WriterOptions {
  readonly link: PostgresLink;
  readonly clock: Clock;
  readonly shown: string;
  readonly lock: number;
}

interface Attempt<Result> {
  /** The transaction's id on the server; undefined: it had not begun. */
  id?: string;
  /** Set when only the commit was left. */
  done?: { readonly result: Result };
}

/**
 * Write transactions, one at a time over all processes: each first locks the whole schema. What it reads stays valid
 * until its commit. So no transaction is repeated because of others, and event ids follow the order of visibility.
 */
class Writers {
  readonly #db: Kysely<Schema>;
  readonly #options: WriterOptions;
  /** Settles when this process's earlier writers are done, so that they do not wait for the lock on own connections. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(db: Kysely<Schema>, options: WriterOptions) {
    this.#db = db;
    this.#options = options;
  }

  run<Result>(work: (writer: Writer) => Promise<Result>): Promise<Result> {
    const deadline = this.#options.clock.monotonic() + this.#options.link.reconnectMs;
    const turn = this.#last.then(() => this.#options.link.patiently(() => this.#try(work, deadline), deadline));
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #try<Result>(work: (writer: Writer) => Promise<Result>, deadline: number): Promise<Result> {
    const attempt: Attempt<Result> = {};
    try {
      return await this.#db.transaction().execute(async (writer) => {
        attempt.id = await this.#begin(writer);
        const result = await work(writer);
        attempt.done = { result };
        return result;
      });
    } catch (error) {
      if (attempt.done === undefined || attempt.id === undefined || postgresFailure(error) !== 'away') throw error;
      if (await this.#wasCommitted(attempt.id, deadline)) return attempt.done.result;
      throw error;
    }
  }

  /** Takes the lock before any read. Poolers such as PgBouncer pass on a transaction's settings, not a session's. */
  async #begin(writer: Writer): Promise<string> {
    const begun = await sql<{ id: string }>`
      select set_config('lock_timeout', ${String(lockTimeoutMs)}, true),
        set_config('statement_timeout', ${String(statementTimeoutMs)}, true),
        set_config('idle_in_transaction_session_timeout', ${String(idleInTransactionMs)}, true),
        pg_advisory_xact_lock(${lockClass}::int, ${this.#options.lock}::int),
        txid_current()::text as id
    `.execute(writer);
    const [row] = begun.rows;
    if (row === undefined) throw new Error('PostgreSQL returned no transaction id');
    return row.id;
  }

  /**
   * Whether a transaction was committed when the response to its commit was lost. The server knows even after a
   * restart. If it does not know (another server has replaced it), this throws.
   */
  async #wasCommitted(id: string, deadline: number): Promise<boolean> {
    const { link, clock, shown } = this.#options;
    for (;;) {
      const asked = await link.patiently(
        () => sql<{ status: string | null }>`select txid_status(${id}::bigint) as status`.execute(this.#db),
        deadline,
      );
      const status = asked.rows[0]?.status;
      if (status === 'committed') return true;
      if (status === 'aborted') return false;
      if (status !== 'in progress' || clock.monotonic() >= deadline) {
        throw new SvcError(
          'SVC_DATABASE',
          `The state database at ${shown} went away during a change, and cannot tell whether it was made.`,
          {
            hint: 'Look at what is there, and repeat the command if need be.',
          },
        );
      }
      await clock.sleep(10);
    }
  }
}
