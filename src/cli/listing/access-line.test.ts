import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { accessLine } from '../../balancer/access-log/access-line.ts';
import { openRecord, type AccessRecord } from '../../balancer/access-log/access-record.ts';
import { accessTitles, isAccessLine, renderAccessLine } from './access-line.ts';
import type { Tone } from '../ui.ts';

const record: AccessRecord = {
  ...openRecord(Date.parse('2030-01-01T12:00:00.250Z'), 0),
  requestId: 'r1',
  method: 'POST',
  path: '/v1/chat/completions',
  status: 200,
  outcome: 'ok',
  attempts: 1,
  replica: { id: 2, slot: 0, location: 'local' },
  reason: 'least_load',
  loadAtChoice: 3,
  sentMs: 0.4,
  firstByteMs: 45.31,
  totalMs: 12_340,
};

const plain = { paint: (_: Tone, text: string) => text, outWidth: Number.POSITIVE_INFINITY };
const marked = { ...plain, paint: (tone: Tone, text: string) => `<${tone}>${text.trim()}</>` };
const render = (change: Partial<AccessRecord>, ui = plain): string => renderAccessLine(accessLine({ ...record, ...change }).trimEnd(), ui);

test('an access log line is shown in columns below their titles', () => {
  const line = render({});
  expect([accessTitles, line]).toEqual([
    'TIME (UTC)           CODE   FIRST   TOTAL  REPLICA        CHOSEN (LOAD)    REQUEST',
    '2030-01-01 12:00:00  200   45.3ms   12.3s  2 local        least_load (3)   POST /v1/chat/completions',
  ]);
  expect(line.length).toBeLessThanOrEqual(100);
});

test('a failed request is shown with its error and attempts', () => {
  const none = { replica: undefined, reason: undefined, sentMs: undefined, firstByteMs: undefined, path: '/' } as const;
  expect(render({ ...none, status: 503, outcome: 'unavailable', code: 'no_ready_replica', attempts: 0, totalMs: 0.4 })).toBe(
    '2030-01-01 12:00:00  503        -   0.4ms  -              -                POST /  (no_ready_replica)',
  );
  const failed = [
    { replicaId: 1, why: 'unreached' },
    { replicaId: 3, why: 'idle_closed' },
  ] as const;
  expect(render({ path: '/', status: 0, outcome: 'client_gone', attempts: 3, failed, totalMs: 61_000, queuedMs: 2_100 })).toBe(
    '2030-01-01 12:00:00  ---   45.3ms   1m01s  2 local        least_load (3)   POST /  (the client left; waited 2.1s; 3 attempts: 1 unreached, 3 idle_closed)',
  );
  expect(render({ path: '/', status: 502, outcome: 'unavailable', code: 'replica_broke_protocol', fault: 'bad_chunk' })).toMatch(
    /POST \/ {2}\(replica_broke_protocol, bad_chunk\)$/,
  );
  expect(render({ outcome: 'truncated' })).toMatch(/\(the replica broke off\)$/);
  expect(render({ method: 'GET', status: 101, protocol: 'ws' })).toMatch(/\(WebSocket\)$/);
});

test('on a terminal, a long path is cut and the status is coloured', () => {
  const long = { path: `/${'p'.repeat(200)}`, outcome: 'truncated' } as const;
  const line = render(long, { ...plain, outWidth: 120 });
  expect(line).toHaveLength(120);
  expect(line).toMatch(/p… {2}\(the replica broke off\)$/);
  expect(render({}, marked)).toContain('<good>200</>');
  expect(render({ status: 404 }, marked)).toContain('<busy>404</>');
  expect(render(long, marked)).toContain('<bad>200</>');
  expect(render({ status: 500 }, marked)).toContain('<bad>500</>');
  expect(render({ status: 501, outcome: 'refused', code: 'unknown_transfer_coding' }, marked)).toContain('<busy>501</>');
});

test('control sequences in a path do not reach the terminal', () => {
  // The balancer refuses such a request, but a line of the log may still contain one.
  const line = JSON.stringify({ ...JSON.parse(accessLine(record)), path: '/a\u001B[2Jb\u0007c', reason: '\u001B[2J', place: '\u0007' });
  const shown = renderAccessLine(line, plain);
  expect(shown).toContain('POST /ab c');
  expect(stripVTControlCharacters(shown)).toBe(shown);
});

test("messages of the balancer's process are shown between the requests", () => {
  const said = { level: 50, time: '2030-01-01T12:00:00.250Z', pid: 1, name: 'balancer', thread: 0 };
  const error = JSON.stringify({ ...said, err: { type: 'Error', message: 'boom', stack: 's' }, msg: 'Unexpected error on one connection' });
  expect(renderAccessLine(error, plain)).toBe('2030-01-01 12:00:00  error  Unexpected error on one connection: boom');
  expect(renderAccessLine(JSON.stringify({ ...said, level: 30, msg: 'Listening' }), plain)).toBe('2030-01-01 12:00:00  info   Listening');
  expect([isAccessLine(error), isAccessLine(accessLine(record))]).toEqual([false, true]);
});

test.for(['half a li', '{"at": "no time"}', '[]', 'null', '{"level":50}'])(
  'a line that cannot be parsed is shown unchanged: %s',
  (line) => {
    expect(renderAccessLine(line, plain)).toBe(line);
  },
);
