import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { messageOf, SvcError } from '../../shared/errors.ts';

/** The parts of the address of a state in PostgreSQL. */
export interface DatabaseAddress {
  /** A host name, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** undefined: from PGPASSWORD or ~/.pgpass. */
  readonly password: string | undefined;
  readonly database: string;
  /** All tables are in this schema, so that the database may also hold other data. */
  readonly schema: string;
  /** `prefer`: with TLS if the server supports it, without if the server reports that it does not. */
  readonly tls: { readonly mode: 'off' } | { readonly mode: 'prefer' | 'on'; readonly options: ConnectionOptions };
  readonly channelBinding: boolean;
  /** Form for messages: without password and parameters. */
  readonly shown: string;
}

const parameters = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'schema', 'host', 'channel_binding', 'application_name'];
const sslModes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'];
const standardPort = 5432;

/**
 * Parses `postgres://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETERS`. Parameters are those of libpq
 * (https://www.postgresql.org/docs/current/libpq-connect.html), plus `schema`. Throws SVC_INVALID_CONFIG without
 * quoting the text, because it contains a password.
 */
export function readDatabaseUrl(text: string): DatabaseAddress {
  const url = parse(text);
  const given = url.searchParams;
  const unknown = [...given.keys()].find((name) => !parameters.includes(name));
  if (unknown !== undefined) throw invalid(`the parameter '${unknown}' is not known`, `Known are: ${parameters.join(', ')}.`);
  const host = given.get('host') ?? decoded(url.hostname, 'host').replace(/^\[(.+)\]$/, '$1');
  const database = decoded(url.pathname.slice(1), 'database');
  if (host === '') throw invalid('it names no host');
  if (database === '' || database.includes('/')) throw invalid('it names no database');
  const user = decoded(url.username, 'user');
  if (user === '') throw invalid('it names no user');
  const schema = given.get('schema') ?? 'svc';
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema))
    throw invalid('its schema is no plain name', 'Use lower-case letters, digits and underscores.');
  const port = url.port === '' ? standardPort : Number(url.port);
  return {
    host,
    port,
    user,
    password: url.password === '' ? undefined : decoded(url.password, 'password'),
    database,
    schema,
    tls: readTls(given, host),
    channelBinding: (given.get('channel_binding') ?? 'prefer') !== 'disable',
    shown: `postgres://${host.includes(':') ? `[${host}]` : host}:${port}/${database}`,
  };
}

function parse(text: string): URL {
  // The message of URL's own error is omitted: it may quote the text.
  if (!URL.canParse(text))
    throw invalid(
      'it is no URL',
      'Write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters of the password percent-encoded.',
    );
  const url = new URL(text);
  if (url.protocol !== 'postgres:' && url.protocol !== 'postgresql:') throw invalid('it does not begin with postgres://');
  return url;
}

function decoded(text: string, part: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // The error's own message could quote a part of the password.
    throw invalid(`its ${part} is not percent-encoded correctly`);
  }
}

function readTls(given: URLSearchParams, host: string): DatabaseAddress['tls'] {
  const mode = given.get('sslmode') ?? 'prefer';
  if (!sslModes.includes(mode)) throw invalid(`its sslmode is none of ${sslModes.join(', ')}`);
  // A connection within this machine cannot be intercepted, so TLS is off by default.
  const isLocal = host.startsWith('/') || host === 'localhost' || host === '::1' || host.startsWith('127.');
  if (mode === 'disable' || (isLocal && !given.has('sslmode'))) return { mode: 'off' };
  const ca = readPem(given, 'sslrootcert');
  const cert = readPem(given, 'sslcert');
  const key = readPem(given, 'sslkey');
  if (mode === 'verify-ca' && ca === undefined) throw invalid('sslmode=verify-ca needs sslrootcert');
  // As in libpq: with a root certificate, `require` also verifies the issuer of the server's certificate.
  const isChecked = mode === 'verify-full' || ca !== undefined;
  const options: ConnectionOptions = {
    host,
    rejectUnauthorized: isChecked,
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(mode === 'verify-full' ? {} : { checkServerIdentity: () => undefined }),
  };
  return { mode: mode === 'prefer' ? 'prefer' : 'on', options };
}

function readPem(given: URLSearchParams, name: string): string | undefined {
  const path = given.get(name);
  if (path === null) return undefined;
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw invalid(`the file of its ${name} cannot be read: ${messageOf(error)}`);
  }
}

function invalid(what: string, hint?: string): SvcError {
  return new SvcError(
    'SVC_INVALID_CONFIG',
    `The address of the state database (serve.controller.database or SVC_DATABASE) cannot be used: ${what}.`,
    { hint },
  );
}

/** Second number of the advisory lock that serializes one schema's writers. The first is the same for all of svc. */
export function lockNumber(schema: string): number {
  return createHash('sha256').update(schema).digest().readInt32BE();
}
