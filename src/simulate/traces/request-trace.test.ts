import { expect, test } from 'vitest';
import { SvcError } from '../../shared/errors.ts';
import { RequestTraceReader } from './request-trace.ts';

function read(text: string, pieceLength = Number.MAX_SAFE_INTEGER) {
  const reader = new RequestTraceReader('day.csv');
  for (let at = 0; at < text.length; at += pieceLength) reader.add(text.slice(at, at + pieceLength));
  const { perSecond, ...rest } = reader.finish();
  return { ...rest, perSecond: [...perSecond] };
}

function errorOf(text: string): SvcError {
  try {
    read(text);
  } catch (error) {
    if (error instanceof SvcError) return error;
    throw error;
  }
  throw new Error('the trace was read');
}

test.for([
  ['counts', 'requests_per_second\n16\n12\n0\n', [16, 12, 0]],
  ['arrivals', 'seconds,context_tokens,generated_tokens\n0.000,4808,10\n0.052,3180,8\n2.098,110,27\n', [2, 0, 1]],
  ['arrivals', '0.5,1,2\n1.4,3,4\n1.6,5,6\n', [2, 1]],
  ['arrivals', '0.5\n\n1.5\n', [1, 1]],
  ['timestamps', '{"timestamp": 0, "input_length": 1}\n{"timestamp": 2500, "hash_ids": [0, 1]}\n', [1, 0, 1]],
  ['pairs', 'seconds,requests\n10,3\n12,1.5\n', [3, 0, 1.5]],
  ['pairs', '0,4\n1,5\n', [4, 5]],
] as const)('%s: requests are counted by second', ([format, text, perSecond]) => {
  expect(read(text)).toEqual({ format, perSecond, startedAt: undefined });
});

test('the requests of a minute are spread over its seconds', () => {
  const { format, perSecond } = read('Time (min),Requests\n0,120\n2,60\n');
  expect(format).toBe('minutes');
  expect([perSecond.length, perSecond[59], perSecond[60], perSecond[179]]).toEqual([180, 2, 0, 1]);
});

test.for(['2023-11-16 18:15:46.680590,374,44', '2023-11-16T18:15:46.680Z,374,44', '2023-11-16 19:15:46.68+01:00,374,44'])(
  '%s: a date gives the wall time of the trace',
  (first) => {
    const { perSecond, startedAt = 0 } = read(`TIMESTAMP,ContextTokens,GeneratedTokens\n${first}\n2023-11-16 18:15:48.700,1,1\n`);
    expect(perSecond).toEqual([1, 0, 1]);
    expect(Math.floor(startedAt / 1_000)).toBe(Date.UTC(2023, 10, 16, 18, 15, 46) / 1_000);
  },
);

test('an access log has its requests in the order of their ends, and other messages', () => {
  const lines = [
    { level: 30, time: '2026-01-01T00:00:00.000Z', msg: 'listening' },
    { at: '2026-01-01T00:00:05.000Z', method: 'GET', path: '/', status: 200, outcome: 'ok', total_ms: 10 },
    { at: 1_767_225_601_000, method: 'POST', path: '/', status: 200, outcome: 'ok', total_ms: 9_000 },
    { at: '2026-01-01T00:00:03.000Z', method: '', path: '', status: 0, outcome: 'no_request', total_ms: 0 },
  ];
  expect(read(lines.map((line) => JSON.stringify(line)).join('\n'))).toEqual({
    format: 'access_log',
    perSecond: [1, 0, 0, 0, 1],
    startedAt: 1_767_225_601_000,
  });
});

test('pieces of any length, Windows line ends and a missing last line end give the same trace', () => {
  const text = 'seconds,requests\r\n0,3\r\n1,4\r\n7,1';
  const whole = read(text);
  for (const pieceLength of [1, 2, 3, 5, 8]) expect(read(text, pieceLength)).toEqual(whole);
});

test('an unknown first line is refused with the known formats', () => {
  const error = errorOf('window_start_s,rate_per_s\n0,14.8\n');
  expect({ code: error.code, problems: error.problems }).toEqual({
    code: 'SVC_BAD_TRACE',
    problems: [
      {
        message: 'expected the first line of a trace of requests',
        file: 'day.csv',
        line: 1,
        column: 1,
        excerpt: 'window_start_s,rate_per_s',
      },
    ],
  });
  expect(error.hint).toContain('a header `requests_per_second`');
});

test.for([
  ['requests_per_second\n3\n-1\n', 3, 'expected a number of requests'],
  ['requests_per_second\n3\n\nx\n', 4, 'expected a number of requests'],
  ['seconds,requests\n1,2,3\n', 2, 'expected a second and a number of requests'],
  ['Time (min),Requests\n0,many\n', 2, 'expected a minute and a number of requests'],
  ['0.5\nyesterday\n', 2, 'expected a time in seconds, or a date such as 2026-01-31 08:00:00'],
  ['{"timestamp": 0}\n{"timestamp": 1', 2, 'expected a JSON object with a number in `timestamp`'],
  ['{"at": 1, "outcome": "ok"}\n{"to": 1}\n', 2, 'expected a JSON object with a time in `at`'],
  ['seconds,requests\n0,1\n1e12,1\n', 3, 'expected a time within 100 days of the others'],
] as const)('%j: the error names the line and what was expected', ([text, line, message]) => {
  expect(errorOf(text)).toMatchObject({ code: 'SVC_BAD_TRACE', problems: [{ file: 'day.csv', line, message }] });
});

test.for(['', 'seconds,requests\n', 'requests_per_second\n0\n0\n'])('%j: a trace without requests is refused', (text) => {
  expect(errorOf(text)).toMatchObject({ code: 'SVC_BAD_TRACE', message: 'The trace day.csv has no requests.' });
});

test('a file without line ends is refused before it fills the memory', () => {
  const reader = new RequestTraceReader('day.csv');
  const piece = 'x'.repeat(600_000);
  reader.add(piece);
  expect(() => reader.add(piece)).toThrow('The trace day.csv cannot be read.');
});
