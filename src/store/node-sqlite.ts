import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import {
  CompiledQuery,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryResult,
} from 'kysely';
import type { Clock } from '../shared/clock.ts';
import { explainSqliteError, isBusy } from './sqlite-errors.ts';

/** How long to wait for other processes' transactions, ms. Each lasts about a millisecond, so this is only reached when one is stopped. */
const busyTimeoutMs = 5_000;

/** Longest pause between two tries for the lock, ms. */
const longestPauseMs = 16;

/** Makes kysely speak to SQLite through Node's built-in module, so that no native package is installed. */
export function nodeSqliteDialect(path: string, clock: Clock): Dialect {
  return {
    createDriver: () => new NodeSqliteDriver(path, clock),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createAdapter: () => new SqliteAdapter(),
    createIntrospector: (db: Kysely<unknown>) => new SqliteIntrospector(db),
  };
}

/** One connection; kysely lets its users have it one after another, as the adapter says that there are no more. */
class NodeSqliteDriver implements Driver {
  readonly #path: string;
  readonly #clock: Clock;
  #database: DatabaseSync | undefined;
  #connection: NodeSqliteConnection | undefined;

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  async init(): Promise<void> {
    let database: DatabaseSync;
    try {
      database = new DatabaseSync(this.#path, { enableForeignKeyConstraints: true });
    } catch (error) {
      throw explainSqliteError(error, this.#path);
    }
    const connection = new NodeSqliteConnection(database, this.#path, this.#clock);
    try {
      // WAL: readers never wait for the writer. Synchronous full: a commit is on the disk when it returns, as what follows it may be a
      // machine that costs money; measured at 0.6 ms each, for a few a second.
      await connection.run('pragma journal_mode = wal');
      await connection.run('pragma synchronous = full');
      // What is deleted may have been secret: it is overwritten, not just forgotten.
      await connection.run('pragma secure_delete = on');
    } catch (error) {
      database.close();
      throw error;
    }
    this.#database = database;
    this.#connection = connection;
  }

  async acquireConnection(): Promise<NodeSqliteConnection> {
    if (this.#connection === undefined) throw new Error('the database is not open');
    return this.#connection;
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    // Immediate: a transaction that only later turns into a writing one fails at once when another wrote in between.
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'));
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    // SQLite has already rolled back by itself after some errors, such as a full disk.
    if (this.#database?.isTransaction === true) await connection.executeQuery(CompiledQuery.raw('rollback'));
  }

  async releaseConnection(): Promise<void> {
    // The one connection stays open until the end.
  }

  async destroy(): Promise<void> {
    this.#database?.close();
  }
}

class NodeSqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #clock: Clock;

  constructor(database: DatabaseSync, path: string, clock: Clock) {
    this.#database = database;
    this.#path = path;
    this.#clock = clock;
  }

  run(text: string): Promise<QueryResult<unknown>> {
    return this.executeQuery(CompiledQuery.raw(text));
  }

  /**
   * Waits for locks here rather than in SQLite, which would stop the whole process meanwhile: its event loop goes on serving. A statement that
   * found the database locked has done nothing, so it is safe to repeat; inside a transaction none does, as that began with the lock.
   */
  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    const deadline = this.#clock.monotonic() + busyTimeoutMs;
    for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      try {
        return this.#execute(query);
      } catch (error) {
        if (!isBusy(error) || this.#clock.monotonic() >= deadline) throw explainSqliteError(error, this.#path);
      }
      await this.#clock.sleep(pauseMs);
    }
  }

  #execute<Row>(query: CompiledQuery): QueryResult<Row> {
    const statement = this.#database.prepare(query.sql);
    const parameters = query.parameters.map(toInput);
    if (statement.columns().length > 0) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kysely derived Row from the schema's types for this very query
      return { rows: statement.all(...parameters) as Row[] };
    }
    const { changes, lastInsertRowid } = statement.run(...parameters);
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
  }

  streamQuery(): never {
    throw new Error('results are read as a whole');
  }
}

/** The values that columns take; kysely does not know which those are. */
function toInput(value: unknown): SQLInputValue {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' || value instanceof Uint8Array)
    return value;
  throw new TypeError(`a column cannot hold a value of type ${typeof value}`);
}
