import { expect, test } from 'vitest';
import { accessLine } from '../balancer/access-line.ts';
import { openRecord } from '../balancer/access-record.ts';
import { renderAccessLine } from './access-line.ts';

const at = Date.parse('2030-01-01T12:00:00.250Z');
const record = {
  ...openRecord(at, 0),
  requestId: 'r1',
  method: 'GET',
  path: '/v1/models',
  status: 200,
  outcome: 'ok' as const,
  attempts: 1,
  totalMs: 12.34,
};
const shown = (change: object): string => renderAccessLine(accessLine({ ...record, ...change }).trimEnd());

test('a line that the balancer writes becomes columns', () => {
  expect(shown({ replica: { id: 2, slot: 0, place: 'local' }, reason: 'least_load', loadAtChoice: 3 })).toBe(
    '2030-01-01 12:00:00.250Z  200  12.3 ms   replica 2   GET /v1/models  (least_load, 3 in flight)',
  );
});

test('what went wrong is said', () => {
  expect(shown({ status: 503, outcome: 'unavailable', code: 'no_ready_replica', attempts: 0, totalMs: 0.4 })).toBe(
    '2030-01-01 12:00:00.250Z  503  0.4 ms    -           GET /v1/models  (unavailable: no_ready_replica)',
  );
  expect(shown({ status: 0, outcome: 'client_gone', attempts: 2, totalMs: 61_000, replica: { id: 1, slot: 0, place: 'local' }, reason: 'only', loadAtChoice: 0 })).toBe(
    '2030-01-01 12:00:00.250Z  ---  61.00 s   replica 1   GET /v1/models  (client_gone; 2 attempts; only, 0 in flight)',
  );
});

test('a path cannot write to the terminal', () => {
  // The balancer refuses such a request; a line of the log may still hold one.
  const line = { ...JSON.parse(accessLine(record)), path: '/a\u001B[2Jb\u0007c' };
  expect(renderAccessLine(JSON.stringify(line))).toContain('GET /ab c');
});

test.for(['half a li', '{"at": "no number"}', '[]', 'null'])('a line that is not understood is shown as it is: %s', (line) => {
  expect(renderAccessLine(line)).toBe(line);
});
