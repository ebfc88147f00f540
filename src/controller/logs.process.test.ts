import { appendFileSync, mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../shared/clock.ts';
import { readLogs, type LogRequest } from './logs.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'svc-logs-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const read = async (request: Partial<LogRequest> & Pick<LogRequest, 'files'>): Promise<string> => {
  const chunks: Buffer[] = [];
  const whole: LogRequest = { tail: undefined, follow: false, ended: () => Promise.resolve(true), ...request };
  for await (const chunk of readLogs(whole, systemClock, new AbortController().signal)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
};

const file = (name: string, content: string): string => {
  const path = join(dir, name);
  writeFileSync(path, content);
  return path;
};

test('files are read one after another, and missing ones count as empty', async () => {
  expect(await read({ files: [file('a', '1\n2\n'), join(dir, 'missing'), file('b', '3\n')] })).toBe('1\n2\n3\n');
});

test.each([
  [0, ''],
  [1, '5\n'],
  [2, '4\n5\n'],
  [3, '3\n4\n5\n'],
  [99, '1\n2\n3\n4\n5\n'],
])('the last %d lines are taken over both files together', async (tail, text) => {
  expect(await read({ files: [file('a', '1\n2\n3\n'), file('b', '4\n5\n')], tail })).toBe(text);
});

test('a last line without a newline counts as a line', async () => {
  expect(await read({ files: [file('a', '1\n2\n3')], tail: 2 })).toBe('2\n3');
});

test('the last lines of a file of many chunks are found', async () => {
  const lines = Array.from({ length: 50_000 }, (_, index) => `line ${index}`);
  expect(await read({ files: [file('a', `${lines.join('\n')}\n`)], tail: 3 })).toBe('line 49997\nline 49998\nline 49999\n');
});

test('following returns appended lines, and everything written before the end', async () => {
  const path = file('a', '1\n');
  let asked = 0;
  const ended = (): Promise<boolean> => {
    asked += 1;
    if (asked === 2) appendFileSync(path, '2\n');
    if (asked === 3) appendFileSync(path, '3\n');
    return Promise.resolve(asked === 3);
  };
  expect(await read({ files: [path], follow: true, ended })).toBe('1\n2\n3\n');
});

test('following a rotated log misses no line and repeats none', async () => {
  const [before, path] = [file('log.1', 'old\n'), file('log', '1\n')];
  let asked = 0;
  const ended = (): Promise<boolean> => {
    asked += 1;
    if (asked === 2) {
      appendFileSync(path, '2\n');
      renameSync(path, before);
      writeFileSync(path, '3\n');
    }
    if (asked === 3) appendFileSync(path, '4\n');
    return Promise.resolve(asked === 3);
  };
  expect(await read({ files: [before, path], follow: true, ended })).toBe('old\n1\n2\n3\n4\n');
});

test.each([
  [undefined, 'old\n1\n2\n'],
  [99, 'old\n1\n2\n'],
  [2, '1\n2\n'],
])('a log whose older part was released starts with its kept part (tail %s)', async (tail, text) => {
  const path = file('a', '');
  // A hole larger than any disk that runs these tests.
  truncateSync(path, 4_000_000_000_000 + 1_234);
  appendFileSync(path, 'old\n1\n2\n');
  expect(await read({ files: [path], tail })).toBe(text);
});
