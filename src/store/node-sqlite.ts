import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
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
import { delayMs, type Backoff } from '../shared/backoff.ts';
import type { Clock } from '../shared/clock.ts';
import { explainSqliteError, isBusy, isNoSpace } from './sqlite-errors.ts';

/** How long to wait for other processes' transactions, ms. Each takes about 1 ms: only a stopped process takes more. */
const busyTimeoutMs = 5_000;

/** Prepared statements that a connection keeps. Lists of values vary some texts, so their number needs a bound. */
const mostStatements = 200;

const relock: Backoff = { firstMs: 1, longestMs: 16 };

/** Connects kysely to SQLite through Node's built-in module, so no native package is needed. */
export function nodeSqliteDialect(path: string, clock: Clock, makeSpace: () => boolean): Dialect {
  return {
    createDriver: () => new NodeSqliteDriver(path, clock, makeSpace),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createAdapter: () => new SqliteAdapter(),
    createIntrospector: (db: Kysely<unknown>) => new SqliteIntrospector(db),
  };
}

/** One connection that kysely's users share one after another. The adapter reports that there are no more. */
class NodeSqliteDriver implements Driver {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #makeSpace: () => boolean;
  #database: DatabaseSync | undefined;
  #connection: NodeSqliteConnection | undefined;

  constructor(path: string, clock: Clock, makeSpace: () => boolean) {
    this.#path = path;
    this.#clock = clock;
    this.#makeSpace = makeSpace;
  }

  async init(): Promise<void> {
    for (;;) {
      try {
        await this.#open();
        return;
      } catch (error) {
        if (!isNoSpace(error) || !this.#makeSpace()) throw error;
      }
    }
  }

  async #open(): Promise<void> {
    let database: DatabaseSync;
    try {
      database = new DatabaseSync(this.#path, { enableForeignKeyConstraints: true });
    } catch (error) {
      throw explainSqliteError(error, this.#path);
    }
    const connection = new NodeSqliteConnection(database, this.#path, this.#clock);
    try {
      // WAL: readers never wait for the writer. Synchronous full: a returned commit is on the disk, because the next
      // step may create a machine that costs money. Measured at 0.6 ms each, for a few per second.
      await connection.run('pragma journal_mode = wal');
      await connection.run('pragma synchronous = full');
      // Deleted data may have been secret, so SQLite overwrites it.
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
    // Immediate: a transaction that starts as a reader fails at once if another process wrote before its first write.
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
    // The single connection stays open until the driver closes.
  }

  async destroy(): Promise<void> {
    this.#database?.close();
  }
}

class NodeSqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #statements = new Map<string, StatementSync>();

  constructor(database: DatabaseSync, path: string, clock: Clock) {
    this.#database = database;
    this.#path = path;
    this.#clock = clock;
  }

  run(text: string): Promise<QueryResult<unknown>> {
    return this.executeQuery(CompiledQuery.raw(text));
  }

  /**
   * Waits for locks here, because SQLite would block the event loop. A statement that found the database locked had no
   * effect, so it is repeated. Inside a transaction this does not occur: the transaction began with the lock.
   */
  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    const deadline = this.#clock.monotonic() + busyTimeoutMs;
    for (let tries = 1; ; tries += 1) {
      try {
        return this.#execute(query);
      } catch (error) {
        if (!isBusy(error) || this.#clock.monotonic() >= deadline) throw explainSqliteError(error, this.#path);
      }
      await this.#clock.sleep(delayMs(relock, tries));
    }
  }

  /** SQLite prepares a statement again by itself when another process has changed the schema. */
  #prepare(text: string): StatementSync {
    const known = this.#statements.get(text);
    if (known !== undefined) return known;
    const made = this.#database.prepare(text);
    if (this.#statements.size < mostStatements) this.#statements.set(text, made);
    return made;
  }

  #execute<Row>(query: CompiledQuery): QueryResult<Row> {
    const statement = this.#prepare(query.sql);
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

/** Converts a value to a type that columns accept; kysely does not know these types. */
function toInput(value: unknown): SQLInputValue {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' || value instanceof Uint8Array)
    return value;
  throw new TypeError(`a column cannot hold a value of type ${typeof value}`);
}
