import { describe, expect, test } from 'vitest';
import { SvcError } from '../../shared/errors.ts';
import { lockNumber, readDatabaseUrl } from './database-url.ts';

function refusalOf(url: string): SvcError | undefined {
  try {
    readDatabaseUrl(url);
  } catch (error) {
    if (error instanceof SvcError) return error;
    throw error;
  }
  return undefined;
}

const tlsOf = (query: string, host = 'db.example'): unknown => readDatabaseUrl(`postgres://svc@${host}/state?${query}`).tls;

test('an address is parsed into its parts', () => {
  expect(readDatabaseUrl('postgres://svc:pass%3A%40%2F@db.example:6432/state?schema=team_a&sslmode=disable')).toMatchObject({
    host: 'db.example',
    port: 6432,
    user: 'svc',
    password: 'pass:@/',
    database: 'state',
    schema: 'team_a',
    tls: { mode: 'off' },
    shown: 'postgres://db.example:6432/state',
  });
});

test('omitted parts have their usual defaults', () => {
  expect(readDatabaseUrl('postgresql://svc@[fd00::1]/state')).toMatchObject({
    host: 'fd00::1',
    port: 5432,
    password: undefined,
    schema: 'svc',
    tls: { mode: 'prefer' },
    channelBinding: true,
    shown: 'postgres://[fd00::1]:5432/state',
  });
});

test('a Unix socket is given by its folder, as host or as parameter', () => {
  expect(readDatabaseUrl('postgres://svc@%2Fvar%2Frun%2Fpostgresql/state')).toMatchObject({
    host: '/var/run/postgresql',
    tls: { mode: 'off' },
  });
  expect(readDatabaseUrl('postgres://svc@localhost/state?host=/run/pg')).toMatchObject({ host: '/run/pg', tls: { mode: 'off' } });
});

describe('TLS', () => {
  test('is preferred by default, but off for connections within this machine', () => {
    expect(tlsOf('')).toMatchObject({ mode: 'prefer', options: { rejectUnauthorized: false } });
    expect(['localhost', '127.0.0.1', '[::1]'].map((host) => tlsOf('', host))).toEqual([{ mode: 'off' }, { mode: 'off' }, { mode: 'off' }]);
  });

  test('has the same meaning for each sslmode as in psql', () => {
    expect(tlsOf('sslmode=disable')).toEqual({ mode: 'off' });
    expect(tlsOf('sslmode=require')).toMatchObject({ mode: 'on', options: { rejectUnauthorized: false } });
    expect(tlsOf('sslmode=verify-full')).toMatchObject({ mode: 'on', options: { host: 'db.example', rejectUnauthorized: true } });
    expect(tlsOf('sslmode=verify-full')).not.toHaveProperty('options.checkServerIdentity');
    expect(tlsOf('sslmode=require', 'localhost')).toMatchObject({ mode: 'on' });
  });
});

test.each([
  ['postgres//svc:geheim@host/db', 'it is no URL'],
  ['postgres://svc:geheim@host:99999/db', 'it is no URL'],
  ['postgres://svc:geheim@a:1,b:2/db', 'it is no URL'],
  ['mysql://svc:geheim@host/db', 'it does not begin with postgres://'],
  ['postgres:///db', 'it names no host'],
  ['postgres://:geheim@host/db', 'it names no user'],
  ['postgres://svc:geheim@host', 'it names no database'],
  ['postgres://svc:geheim@host/', 'it names no database'],
  ['postgres://svc:geheim%zz@host/db', 'its password is not percent-encoded correctly'],
  ['postgres://svc:geheim@host/db?schema=My-Team', 'its schema is no plain name'],
  ['postgres://svc:geheim@host/db?sslmode=maybe', 'its sslmode is none of disable, prefer, require, verify-ca, verify-full'],
  ['postgres://svc:geheim@host/db?sslmode=verify-ca', 'sslmode=verify-ca needs sslrootcert'],
  [
    'postgres://svc:geheim@host/db?sslrootcert=/nowhere',
    "the file of its sslrootcert cannot be read: ENOENT: no such file or directory, open '/nowhere'",
  ],
  ['postgres://svc:geheim@host/db?poolsize=1', "the parameter 'poolsize' is not known"],
])('%s is refused without showing the password', (url, what) => {
  const refusal = refusalOf(url);
  expect(refusal?.code).toBe('SVC_INVALID_CONFIG');
  expect(refusal?.message).toBe(`The address of the state database (serve.controller.database or SVC_DATABASE) cannot be used: ${what}.`);
  expect(`${refusal?.message} ${refusal?.hint}`).not.toContain('geheim');
});

test('each schema has its own lock', () => {
  const numbers = ['svc', 'team_a', 'team_b'].map(lockNumber);
  expect(new Set(numbers).size).toBe(3);
  expect(numbers.every((number) => Number.isInteger(number) && Math.abs(number) <= 2 ** 31)).toBe(true);
});
