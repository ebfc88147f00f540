import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { shellCommand } from './shell-quote.ts';

test('a shell splits quoted words into the original words', () => {
  const word = fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\0', ''));
  fc.assert(
    fc.property(fc.array(fc.oneof(word, fc.constantFrom("'", "''", '$HOME', '\\', '\n', '-n', '*', '~', '"`$(id)'))), (words) => {
      const script = `printf '%s\\0' ${shellCommand(words)} end`;
      expect(execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0')).toEqual([...words, 'end', '']);
    }),
    { numRuns: 50 },
  );
});
