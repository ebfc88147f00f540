import fc from 'fast-check';
import { expect, test } from 'vitest';
import { accessLine } from './access-line.ts';
import { recordFailedTry, openRecord } from './access-record.ts';

const replica = { id: 3, slot: 0, location: 'aws/us-east-2' };

test('any request content gives a line that is one JSON object', () => {
  const record = openRecord(1_893_456_000_007, 5);
  Object.assign(record, { requestId: 'a"b', method: 'GET', path: '/"\\{}\'', status: 200, outcome: 'ok', protocol: 'h2', isTls: true });
  Object.assign(record, { replica: { id: 1, slot: 1, location: 'local' }, attempts: 2, traceId: '4bf92f3577b34da6a3ce929d0e0e4736' });
  recordFailedTry(record, 'unreached');
  record.client = '2001:db8::1';
  Object.assign(record, { replica, reason: 'least_load', loadAtChoice: 2, queuedMs: 31.25 });
  Object.assign(record, { sentMs: 0.123_45, firstByteMs: 1.5, totalMs: 2, bytesIn: 10, bytesOut: 20 });
  const line = accessLine(record);
  expect(line.indexOf('\n')).toBe(line.length - 1);
  expect(JSON.parse(line)).toEqual({
    at: '2030-01-01T00:00:00.007Z',
    id: 'a"b',
    method: 'GET',
    path: '/"\\{}\'',
    protocol: 'h2',
    tls: true,
    client: '2001:db8::1',
    status: 200,
    outcome: 'ok',
    replica: 3,
    place: 'aws/us-east-2',
    reason: 'least_load',
    load: 2,
    attempts: 2,
    failed: [{ replica: 1, why: 'unreached' }],
    trace: '4bf92f3577b34da6a3ce929d0e0e4736',
    queued_ms: 31.25,
    sent_ms: 0.12,
    first_byte_ms: 1.5,
    total_ms: 2,
    bytes_in: 10,
    bytes_out: 20,
  });
});

test('the line of a request that reached no replica names no replica', () => {
  const record = openRecord(0, 0);
  Object.assign(record, { code: 'bad_host', fault: 'bad_chunk' });
  expect(JSON.parse(accessLine(record))).toEqual({
    at: '1970-01-01T00:00:00.000Z',
    id: '',
    method: '',
    path: '',
    protocol: 'h1',
    status: 0,
    outcome: 'client_gone',
    code: 'bad_host',
    fault: 'bad_chunk',
    attempts: 0,
    total_ms: 0,
    bytes_in: 0,
    bytes_out: 0,
  });
});

test('times have two decimals, and any text stays on one line', () => {
  const time = fc.integer({ min: 0, max: 4e12 });
  const ms = fc.double({ min: 0, max: 1e9, noNaN: true });
  fc.assert(
    fc.property(time, ms, fc.string({ unit: 'binary', maxLength: 1_000 }), (at, totalMs, path) => {
      const line = accessLine({ ...openRecord(at, 0), totalMs, path });
      const read: { at: string; total_ms: number; path: string } = JSON.parse(line);
      return (
        Date.parse(read.at) === at &&
        Math.abs(read.total_ms - totalMs) < 0.005_1 &&
        read.path === path &&
        line.indexOf('\n') === line.length - 1
      );
    }),
  );
});

test('long paths and methods are truncated in the line', () => {
  const record = { ...openRecord(1, 0), method: 'M'.repeat(8_000), path: `/${'p'.repeat(8_000)}` };
  expect(accessLine(record).length).toBeLessThan(1_300);
});
