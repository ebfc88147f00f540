import { expect, test } from 'vitest';
import { shellLine } from './commands/jobs.ts';

test('a single word is a whole shell command line', () => {
  expect(shellLine(['ls | wc -l'])).toBe('ls | wc -l');
});

test('several words are quoted so that each stays one word', () => {
  expect(shellLine(['python3', 'train.py', '--name', "it's $HOME", ''])).toBe(`python3 train.py --name 'it'\\''s $HOME' ''`);
});
