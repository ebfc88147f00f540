import { expect, test } from 'vitest';
import { shellLine } from './shell-line.ts';

test('a single word is a line of the shell', () => {
  expect(shellLine(['ls | wc -l'])).toBe('ls | wc -l');
});

test('several words stay the words they are', () => {
  expect(shellLine(['python3', 'train.py', '--name', "it's $HOME", ''])).toBe(`python3 train.py --name 'it'\\''s $HOME' ''`);
});
