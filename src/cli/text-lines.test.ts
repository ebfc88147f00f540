import { expect, test } from 'vitest';
import { textLines } from './commands/one-service.ts';

async function linesOf(...pieces: readonly Uint8Array[]): Promise<readonly string[]> {
  async function* source(): AsyncGenerator<Uint8Array> {
    yield* pieces;
  }
  const lines: string[] = [];
  for await (const line of textLines(source())) lines.push(line);
  return lines;
}

test('lines and characters may be split between chunks', async () => {
  const bytes = Buffer.from('one\nzwölf\n\nrest');
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    expect(await linesOf(bytes.subarray(0, cut), bytes.subarray(cut))).toEqual(['one', 'zwölf', '', 'rest']);
  }
  expect(await linesOf(Buffer.from('one\n'))).toEqual(['one']);
});
