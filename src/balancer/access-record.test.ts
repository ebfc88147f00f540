import { expect, test } from 'vitest';
import { accessLine, openRecord, withoutQuery } from './access-record.ts';

test('a line is one JSON object, whatever a client put into its request', () => {
  const record = openRecord(1_000, 5);
  record.requestId = 'a"b';
  record.method = 'GET';
  record.path = '/"\\{}\'';
  record.status = 200;
  record.outcome = 'ok';
  record.replicaId = 3;
  record.reason = 'least_load';
  record.loadAtChoice = 2;
  record.attempts = 1;
  record.sentMs = 0.123_45;
  record.firstByteMs = 1.5;
  record.totalMs = 2;
  record.bytesIn = 10;
  record.bytesOut = 20;
  const line = accessLine(record);
  expect(line.indexOf('\n')).toBe(line.length - 1);
  expect(JSON.parse(line)).toEqual({
    at: 1_000,
    id: 'a"b',
    method: 'GET',
    path: '/"\\{}\'',
    status: 200,
    outcome: 'ok',
    replica: 3,
    reason: 'least_load',
    load: 2,
    attempts: 1,
    sent_ms: 0.12,
    first_byte_ms: 1.5,
    total_ms: 2,
    bytes_in: 10,
    bytes_out: 20,
  });
});

test('a request that reached no replica has none in its line', () => {
  const record = openRecord(0, 0);
  record.code = 'bad_host';
  expect(JSON.parse(accessLine(record))).toEqual({
    at: 0,
    id: '',
    method: '',
    path: '',
    status: 0,
    outcome: 'client_gone',
    code: 'bad_host',
    attempts: 0,
    total_ms: 0,
    bytes_in: 0,
    bytes_out: 0,
  });
});

test('the query, where secrets are, is left out', () => {
  expect([withoutQuery('/a?key=s'), withoutQuery('/a'), withoutQuery('/?')]).toEqual(['/a', '/a', '/']);
});
