import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { getuid } from 'node:process';
import pg from 'pg';
import type { KeyAndCertificate } from './certificate.ts';
import { freePort } from './free-port.ts';
import { pathOf, whyMissing } from './needs.ts';
import { waitFor } from './wait-for.ts';

/** The only user of the test servers; its password has characters that a URL must encode. */
const user = { name: 'svc', password: 'pass: w@rd/%?' } as const;

/** A server from Debian's PostgreSQL package, with an empty database; on loopback only. */
export interface PostgresServer {
  readonly port: number;
  /** Its data; the log is next to it. */
  readonly dir: string;
  /** The value of SVC_DATABASE, with parameters such as `{ schema: 'one' }`. */
  url(parameters?: Readonly<Record<string, string>>): string;
  /** The password, which must never appear in output. */
  readonly password: string;
  /** Runs statements as the administrator. */
  run(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Ends all sessions and the server: `immediate` as a crash does, without a shutdown period. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>;
  start(): Promise<void>;
  /** Stops it and removes everything. */
  close(): Promise<void>;
}

/**
 * Runs `use` with a new server and always removes it afterwards. `settings` are those of postgresql.conf; with `tls` it
 * supports TLS.
 */
export async function withPostgres<Result>(
  use: (server: PostgresServer) => Promise<Result>,
  settings: Readonly<Record<string, string>> = {},
  tls?: KeyAndCertificate,
): Promise<Result> {
  const server = await startPostgres(settings, tls);
  try {
    return await use(server);
  } finally {
    await server.close();
  }
}

/** Starts a server, which ends with this process. */
export async function startPostgres(settings: Readonly<Record<string, string>> = {}, tls?: KeyAndCertificate): Promise<PostgresServer> {
  const program = pathOf('postgres');
  if (program === undefined) throw new Error(whyMissing('postgres'));
  const dir = mkdtempSync(join(tmpdir(), 'svc-pg-'));
  const ssl = tls === undefined ? 'off' : 'on';
  const server = new OwnPostgres(dirname(program), dir, await freePort(), {
    ...testSettings,
    unix_socket_directories: dir,
    ssl,
    ...settings,
  });
  try {
    server.initialise();
    if (tls !== undefined) server.addCertificate(tls);
    await server.start();
    await server.run('create database svc', 'postgres');
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

/** Settings of all test servers, whose data need not survive a crash. */
const testSettings = { listen_addresses: '127.0.0.1', fsync: 'off', max_connections: '60' } as const;

class OwnPostgres implements PostgresServer {
  readonly port: number;
  readonly dir: string;
  readonly password = user.password;
  readonly #bin: string;
  readonly #data: string;
  readonly #options: readonly string[];
  readonly #removeAll = (): void => rmSync(this.dir, { recursive: true, force: true });
  #process: ChildProcess | undefined;
  #log = '';

  /** `dir` is removed with it. */
  constructor(bin: string, dir: string, port: number, settings: Readonly<Record<string, string>>) {
    this.#bin = bin;
    this.dir = dir;
    this.port = port;
    this.#data = join(dir, 'data');
    this.#options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    process.once('exit', this.#removeAll);
  }

  initialise(): void {
    chownToPostgres(this.dir);
    const passwordFile = join(this.dir, 'password');
    writeFileSync(passwordFile, user.password, { mode: 0o644 });
    const flags = ['-U', user.name, '-A', 'scram-sha-256', '--pwfile', passwordFile, '-E', 'UTF8', '--locale=C', '--no-sync'];
    const [command, ...args] = asPostgres([join(this.#bin, 'initdb'), '-D', this.#data, ...flags]);
    execFileSync(command, args, { cwd: this.dir, stdio: ['ignore', 'ignore', 'pipe'] });
  }

  addCertificate({ key, cert }: KeyAndCertificate): void {
    for (const [name, text] of Object.entries({ 'server.key': key, 'server.crt': cert })) {
      const path = join(this.#data, name);
      writeFileSync(path, text, { mode: 0o600 });
      chownToPostgres(path);
    }
  }

  async start(): Promise<void> {
    const [command, ...args] = asPostgres([join(this.#bin, 'postgres'), '-D', this.#data, '-p', String(this.port), ...this.#options]);
    const server = spawn(command, args, { cwd: this.dir, stdio: ['ignore', 'ignore', 'pipe'] });
    this.#process = server;
    server.stderr.on('data', (chunk: Buffer) => (this.#log = `${this.#log}${chunk.toString()}`.slice(-10_000)));
    const answers = async (): Promise<boolean> => {
      // Another program may have the port, and would never answer.
      if (server.exitCode !== null) throw new Error(`PostgreSQL ended: ${this.#log}`);
      return (await this.run('select 1', 'postgres').catch(() => [])).length > 0;
    };
    await waitFor('PostgreSQL to answer', answers, { everyMs: 20, describe: () => this.#log });
  }

  async stop(mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
    const server = this.#process;
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
    await ended;
  }

  async close(): Promise<void> {
    await this.stop('immediate');
    process.removeListener('exit', this.#removeAll);
    this.#removeAll();
  }

  url(parameters: Readonly<Record<string, string>> = {}): string {
    const query = new URLSearchParams(parameters).toString();
    return `postgres://${user.name}:${encodeURIComponent(user.password)}@127.0.0.1:${this.port}/svc${query === '' ? '' : `?${query}`}`;
  }

  async run(sql: string, database = 'svc'): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const client = new pg.Client({ host: '127.0.0.1', port: this.port, user: user.name, password: user.password, database });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query<Readonly<Record<string, unknown>>>(sql)).rows;
    } finally {
      await client.end();
    }
  }
}

let shared: Promise<PostgresServer> | undefined;

/** Returns the URL of a new schema, on one server for all tests of a file; see `closeSharedPostgres`. */
export async function newSchema(): Promise<string> {
  shared ??= startPostgres();
  return (await shared).url({ schema: `t_${randomBytes(6).toString('hex')}` });
}

/** Called when the tests that used `newSchema` have finished. */
export async function closeSharedPostgres(): Promise<void> {
  const server = await shared;
  shared = undefined;
  await server?.close();
}

/** PostgreSQL does not run as root. It ends with its parent process, even when that is killed. */
function asPostgres(command: readonly string[]): [string, ...string[]] {
  const drop = getuid?.() === 0 ? ['--reuid', 'postgres', '--regid', 'postgres', '--clear-groups'] : [];
  return ['setpriv', ...drop, '--pdeathsig', 'QUIT', ...command];
}

function chownToPostgres(path: string): void {
  if (getuid?.() !== 0) return;
  const [, uid, gid] = /:(\d+):(\d+):/.exec(execFileSync('getent', ['passwd', 'postgres'], { encoding: 'utf8' })) ?? [];
  if (uid === undefined || gid === undefined) throw new Error(`no user postgres beside ${userInfo().username}`);
  chownSync(path, Number(uid), Number(gid));
}
