import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { readLine } from './read-line.ts';

test('lines come one by one, in whatever pieces they come, and what follows stays', async () => {
  const stream = new PassThrough();
  stream.write('on');
  const first = readLine(stream, 10);
  stream.write('e\ntwo\nrest');
  expect(await first).toBe('one');
  expect(await readLine(stream, 10)).toBe('two');
  expect(String(stream.read())).toBe('rest');
});

test('a line that is too long is refused, whether its end is there or not', async () => {
  for (const text of ['12345678901', '12345678901\n']) {
    const stream = new PassThrough();
    stream.write(text);
    await expect(readLine(stream, 10)).rejects.toMatchObject({ code: 'SVC_BAD_REQUEST' });
  }
  const fits = new PassThrough();
  fits.write('1234567890\n');
  expect(await readLine(fits, 10)).toBe('1234567890');
});

test('a stream that ends within a line says so', async () => {
  const stream = new PassThrough();
  const line = readLine(stream, 10);
  stream.end('half');
  await expect(line).rejects.toThrow('the connection ended');
});
