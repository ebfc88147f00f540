import { expect, test } from 'vitest';
import { compareReadings } from './compare.ts';
import { check, makeCase, run } from './run.ts';
import { shrink } from './shrink.ts';
import type { FuzzCase } from './fuzz-case.ts';

test('svc and node:http agree on thousands of cases, many of them accepted', async () => {
  const cases = 6_000;
  const { finding, refused, known } = await run(1, (done) => done >= cases);
  expect(finding).toBeUndefined();
  expect(refused).toBeLessThan(cases * 0.75);
  const excused = [...known.values()].reduce((sum, count) => sum + count, 0);
  expect(excused).toBeLessThan(cases * 0.1);
});

test('the same seed makes the same case, and other seeds make others', () => {
  expect(makeCase(7)).toEqual(makeCase(7));
  expect(new Set(Array.from({ length: 50 }, (_, seed) => makeCase(seed).text)).size).toBeGreaterThan(30);
});

const requests = (text: string): FuzzCase => ({ kind: 'requests', text, method: 'GET', cuts: [3, 30] });

test('agreement, refusal and known difference are distinguished', async () => {
  expect(await check(requests('GET / HTTP/1.1\r\nHost: a\r\n\r\n'))).toEqual({
    disagreement: undefined,
    isRefused: false,
    knownDifference: undefined,
  });
  expect(await check(requests('GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'))).toMatchObject({ disagreement: undefined, isRefused: true });
  expect(await check(requests('ODD / HTTP/1.1\r\nHost: a\r\n\r\n'))).toMatchObject({
    disagreement: 'message 1: node:http does not see it (node:http refuses: HPE_INVALID_METHOD)',
    knownDifference: 'a method that node:http does not know',
  });
});

test('another number of requests, or another body end, is a disagreement', () => {
  const one = { first: 'GET /', fields: [], body: 'ab', trailers: [], isComplete: true };
  const own = { messages: [one], refusal: undefined };
  expect(compareReadings(own, own)).toBeUndefined();
  expect(compareReadings(own, { messages: [one, one], refusal: undefined })).toBe('node:http reads 2 messages, ours 1');
  expect(compareReadings(own, { messages: [{ ...one, body: 'a' }], refusal: undefined })).toContain('body: ours "ab", node:http "a"');
  expect(compareReadings(own, { messages: [one], refusal: 'HPE_STRICT' })).toBe('node:http refuses it (HPE_STRICT), ours does not');
  expect(compareReadings({ messages: [], refusal: 'bad_host' }, { messages: [one], refusal: undefined })).toBeUndefined();
});

test('a finding is shrunk to its minimum', async () => {
  const large = requests(`GET / HTTP/1.1\r\nHost: a\r\nA: ${'b'.repeat(100)}xyz${'c'.repeat(100)}\r\n\r\n`);
  const smallest = await shrink(large, async ({ text }) => /x.*z/.test(text));
  expect(smallest).toMatchObject({ text: 'xz', cuts: [] });
});
