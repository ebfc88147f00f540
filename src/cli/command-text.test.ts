import fc from 'fast-check';
import { expect, test } from 'vitest';
import { asTyped, typedName, wrapText } from './command-text.ts';
import { commands } from './command-table.ts';

const words = (text: string): string => text.split(/\s+/).filter(Boolean).join(' ');

test.for([
  [undefined, 'svc'],
  ['svc', 'svc'],
  ['./svc', './svc'],
  ['/home/ann/my tools/svc', "'/home/ann/my tools/svc'"],
] as const)('when called by %s, commands begin with %s', ([path, name]) => {
  expect(typedName(path)).toBe(name);
});

test('every command in a text becomes pasteable', () => {
  for (const { path } of commands.filter(({ hidden }) => hidden !== true)) {
    expect(asTyped(`Run: svc ${path.join(' ')} x. Or run it again.`, './svc')).toBe(`Run: ./svc ${path.join(' ')} x. Or run it again.`);
  }
  expect(asTyped('Run: svc --help', '../svc')).toBe('Run: ../svc --help');
  expect(asTyped('curl "$(svc serve status --endpoint chat)"', '$&/svc')).toBe('curl "$($&/svc serve status --endpoint chat)"');
});

test.for([
  'Use the newer version of svc that wrote it.',
  'The folder /opt/svc serve has',
  "Service 'my-svc status' is ready",
  'Job 1 runs: ./svc serve up',
])('text that is not a command is unchanged: %s', (text) => {
  expect(asTyped(text, 'elsewhere/svc')).toBe(text);
});

test('lines break between words and keep the indentation of the first line', () => {
  expect(wrapText('  replica 1  the program was told to start', 22)).toBe('  replica 1  the\n  program was told to\n  start');
  expect(wrapText('replica 1  the program was told to start', 24, 11)).toBe(
    'replica 1  the program\n           was told to\n           start',
  );
});

test('a command is never broken across lines', () => {
  const text = 'hint: Read the log: svc serve logs chat 3. Then take it down: svc serve down chat';
  expect(wrapText(text, 40)).toBe('hint: Read the log:\nsvc serve logs chat 3. Then take it\ndown: svc serve down chat');
  expect(wrapText('Interrupted; run: svc serve status, and see', 20)).toBe('Interrupted; run:\nsvc serve status,\nand see');
});

test('colour codes do not count as columns', () => {
  expect(wrapText('\u001B[2mhint:\u001B[22m a b', 9)).toBe('\u001B[2mhint:\u001B[22m a b');
});

test('wrapping keeps all words; only a single long word exceeds the width', () => {
  fc.assert(
    fc.property(fc.lorem({ maxCount: 30 }), fc.integer({ min: 5, max: 100 }), fc.integer({ min: 0, max: 4 }), (text, width, indent) => {
      const lines = wrapText(text, width, indent).split('\n');
      if (words(lines.join(' ')) !== words(text)) throw new Error('a word is lost');
      for (const line of lines) if (line.length > width && line.trim().includes(' ')) throw new Error(`too long: ${line}`);
    }),
  );
});
