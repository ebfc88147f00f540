import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { readLine } from './read-command.ts';

test('lines are read one by one across chunks, and later bytes stay unread', async () => {
  const stream = new PassThrough();
  stream.write('on');
  const first = readLine(stream, 10);
  stream.write('e\ntwo\nrest');
  expect(await first).toBe('one');
  expect(await readLine(stream, 10)).toBe('two');
  expect(String(stream.read())).toBe('rest');
});

test('a line over the limit is refused, with or without its end', async () => {
  for (const text of ['12345678901', '12345678901\n']) {
    const stream = new PassThrough();
    stream.write(text);
    await expect(readLine(stream, 10)).rejects.toMatchObject({ code: 'SVC_BAD_REQUEST' });
  }
  const fits = new PassThrough();
  fits.write('1234567890\n');
  expect(await readLine(fits, 10)).toBe('1234567890');
});

test('a stream that ends within a line rejects', async () => {
  const stream = new PassThrough();
  const line = readLine(stream, 10);
  stream.end('half');
  await expect(line).rejects.toThrow('the connection ended');
});
