import {
  CompiledQuery,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
} from 'kysely';
import { Pool, types, type PoolClient } from 'pg';
import { delayMs, type Backoff } from '../../shared/backoff.ts';
import type { Clock } from '../../shared/clock.ts';
import type { DatabaseAddress } from './database-url.ts';
import { explainPostgresError, isWithoutTls, postgresFailure } from './postgres-errors.ts';

/** One for the writer, two for readers. A controller has up to twenty processes, a server often 100 connections. */
const connections = 3;
/** Limit for one attempt to connect, and for the wait for a free connection, ms. */
const connectTimeoutMs = 3_000;
const idleMs = 10_000;
/** Without an answer for this long, the route to the server counts as dead, ms. */
const answerTimeoutMs = 8_000;
const reconnect: Backoff = { firstMs: 10, longestMs: 250 };

/** Type number of PostgreSQL's `int8`, which pg would return as text. */
const int8 = 20;

/** Connects kysely to one PostgreSQL server. `reconnectMs`: how long to wait for an unreachable server. */
export interface PostgresLink {
  readonly dialect: Dialect;
  readonly reconnectMs: number;
  /** Repeats work that failed because the server was unreachable, until `deadline`. Throws the error to show. */
  patiently<Result>(work: () => Promise<Result>, deadline: number): Promise<Result>;
}

/** Connects kysely to PostgreSQL through pg, with a small pool that reconnects by itself. */
export function postgresLink(address: DatabaseAddress, clock: Clock, reconnectMs: number): PostgresLink {
  const patiently: PostgresLink['patiently'] = async (work, deadline) => {
    for (let tries = 1; ; tries += 1) {
      const pauseMs = delayMs(reconnect, tries);
      try {
        return await work();
      } catch (error) {
        // Try at least twice: a process or connection that was paused is past the deadline at its first failure.
        const isTooLate = tries > 1 && clock.monotonic() + pauseMs >= deadline;
        if (postgresFailure(error) !== 'away' || isTooLate) throw explainPostgresError(error, address.shown);
      }
      await clock.sleep(pauseMs);
    }
  };
  return {
    dialect: {
      createDriver: () => new PostgresConnections(address, (work) => patiently(work, clock.monotonic() + reconnectMs)),
      createQueryCompiler: () => new PostgresQueryCompiler(),
      createAdapter: () => new PostgresAdapter(),
      createIntrospector: (db) => new PostgresIntrospector(db),
    },
    reconnectMs,
    patiently,
  };
}

type Patiently = <Result>(work: () => Promise<Result>) => Promise<Result>;

class PostgresConnections implements Driver {
  readonly #address: DatabaseAddress;
  readonly #patiently: Patiently;
  #pool: Pool;

  constructor(address: DatabaseAddress, patiently: Patiently) {
    this.#address = address;
    this.#patiently = patiently;
    this.#pool = newPool(address, address.tls.mode === 'off' ? false : address.tls.options);
  }

  async init(): Promise<void> {
    // The pool opens connections on demand.
  }

  async acquireConnection(): Promise<Session> {
    return new Session(() => this.#connect(), this.#patiently);
  }

  /** Falls back to no TLS where TLS was only preferred and the server has none. */
  async #connect(): Promise<PoolClient> {
    const pool = this.#pool;
    try {
      return await pool.connect();
    } catch (error) {
      if (this.#address.tls.mode !== 'prefer' || !isWithoutTls(error)) throw error;
      if (this.#pool === pool) {
        this.#pool = newPool(this.#address, false);
        await pool.end();
      }
      return this.#pool.connect();
    }
  }

  beginTransaction(session: DatabaseConnection): Promise<void> {
    return sessionOf(session).begin();
  }

  commitTransaction(session: DatabaseConnection): Promise<void> {
    return sessionOf(session).commit();
  }

  rollbackTransaction(session: DatabaseConnection): Promise<void> {
    return sessionOf(session).rollback();
  }

  async releaseConnection(session: DatabaseConnection): Promise<void> {
    sessionOf(session).release();
  }

  async destroy(): Promise<void> {
    await this.#pool.end();
  }
}

function sessionOf(connection: DatabaseConnection): Session {
  if (!(connection instanceof Session)) throw new Error('a connection of another driver');
  return connection;
}

function newPool(address: DatabaseAddress, ssl: false | Extract<DatabaseAddress['tls'], { readonly options: unknown }>['options']): Pool {
  const { host, port, user, password, database, channelBinding } = address;
  const pool = new Pool({
    host,
    port,
    user,
    password,
    database,
    ssl,
    enableChannelBinding: channelBinding,
    application_name: 'svc',
    max: connections,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: idleMs,
    query_timeout: answerTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: answerTimeoutMs,
    types: { getTypeParser: (id: number, format?: 'text' | 'binary') => (id === int8 ? Number : types.getTypeParser(id, format)) },
  });
  // The pool drops a broken idle connection; one in use fails its statement. This only keeps the process alive.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/**
 * A connection as kysely sees it. A statement outside of a transaction uses any free connection. It only reads, so it
 * is repeated when the server was unreachable. A transaction has its own connection and is never repeated here.
 */
class Session implements DatabaseConnection {
  readonly #connect: () => Promise<PoolClient>;
  readonly #patiently: Patiently;
  #pinned: PoolClient | undefined;
  #broken: Error | undefined;

  constructor(connect: () => Promise<PoolClient>, patiently: Patiently) {
    this.#connect = connect;
    this.#patiently = patiently;
  }

  async begin(): Promise<void> {
    this.#pinned = await this.#connect();
    this.#broken = undefined;
    await this.#run(this.#pinned, CompiledQuery.raw('begin isolation level read committed'));
  }

  async commit(): Promise<void> {
    if (this.#pinned === undefined) throw new Error('there is no transaction to commit');
    const { command } = await this.#run(this.#pinned, CompiledQuery.raw('commit'));
    // PostgreSQL answers this way when a statement had failed and the client continued anyway.
    if (command !== 'COMMIT') throw new Error('a transaction was committed after one of its statements had failed');
  }

  async rollback(): Promise<void> {
    if (this.#pinned === undefined || this.#broken !== undefined) return;
    // If this fails, the connection is broken, and the server rolls back by itself.
    await this.#run(this.#pinned, CompiledQuery.raw('rollback')).catch(() => undefined);
  }

  release(): void {
    this.#pinned?.release(this.#broken);
    this.#pinned = undefined;
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    const pinned = this.#pinned;
    const { rows, command, rowCount } = await (pinned === undefined
      ? this.#patiently(() => this.#runOnce(query))
      : this.#run(pinned, query));
    const isChange = command === 'INSERT' || command === 'UPDATE' || command === 'DELETE';
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kysely derived Row from the schema's types for this very query
    return { rows: rows as Row[], ...(isChange ? { numAffectedRows: BigInt(rowCount ?? 0) } : {}) };
  }

  async #runOnce(query: CompiledQuery): Promise<Reply> {
    const client = await this.#connect();
    let broken: Error | undefined;
    try {
      return await client.query(query.sql, query.parameters.map(toInput));
    } catch (error) {
      broken = brokenBy(error);
      throw error;
    } finally {
      client.release(broken);
    }
  }

  async #run(client: PoolClient, query: CompiledQuery): Promise<Reply> {
    try {
      return await client.query(query.sql, query.parameters.map(toInput));
    } catch (error) {
      this.#broken ??= brokenBy(error);
      throw error;
    }
  }

  streamQuery(): never {
    throw new Error('results are read as a whole');
  }
}

interface Reply {
  readonly rows: readonly unknown[];
  readonly command: string;
  readonly rowCount: number | null;
}

function brokenBy(error: unknown): Error | undefined {
  return postgresFailure(error) === 'away' && error instanceof Error ? error : undefined;
}

/** Converts a value to a type of columns. PostgreSQL text cannot hold the character 0, which logs may contain. */
function toInput(value: unknown): string | number | bigint | Uint8Array | null {
  if (typeof value === 'string') return value.replaceAll('\0', '�');
  if (value === null || typeof value === 'number' || typeof value === 'bigint' || value instanceof Uint8Array) return value;
  throw new TypeError(`a column cannot hold a value of type ${typeof value}`);
}
