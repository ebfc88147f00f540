import fc from 'fast-check';
import { expect, test } from 'vitest';
import { commandGroups as groups, commands } from './command-table.ts';
import { completeWords, type Completion } from './complete-words.ts';

const complete = (...words: readonly string[]): Completion => completeWords(words, { commands, groups });
const values = (...words: readonly string[]): readonly string[] => complete(...words).candidates.map(({ value }) => value);

test('commands come in the order of help, without the hidden one', () => {
  expect(values('')).toEqual([
    'serve',
    'controller',
    'catalog',
    'status',
    'launch',
    'exec',
    'logs',
    'down',
    'check',
    'offers',
    'completion',
  ]);
  expect(values('c')).toEqual(['controller', 'catalog', 'check', 'completion']);
  expect(values('serve', 't')).toEqual(['terminate-replica']);
});

test('options of a command, both forms of a switch among them', () => {
  expect(values('serve', 'down', '--')).toEqual(['--all', '--purge', '--wait', '--no-wait', '--yes', '--json', '--help']);
  expect(values('serve', 'up', 'x.yaml', '--en')).toEqual(['--env', '--env-file', '--endpoint-port']);
});

test.for<readonly [words: readonly string[], more: string | undefined]>([
  [['serve', 'up', ''], 'file'],
  [['serve', 'up', 'x.yaml', ''], undefined],
  [['serve', 'up', '--env-file', ''], 'file'],
  [['serve', 'up', '--env-file', '=', ''], 'file'],
  [['serve', 'up', '--env-file=x', ''], 'file'],
  [['serve', 'up', '-n', ''], undefined],
  [['serve', 'up', '-n', 'chat', ''], 'file'],
  [['serve', 'up', '--yes', ''], 'file'],
  [['serve', 'down', 'a', 'b', ''], 'service'],
  [['serve', 'logs', 'chat', ''], undefined],
  [['serve', 'status', '--endpoint', ''], 'service'],
  [['exec', 'dev', ''], 'file'],
  [['exec', 'dev', '--', ''], undefined],
  [['launch', '-c', ''], 'cluster'],
])('after %s comes %s', ([words, more]) => {
  expect(complete(...words)).toEqual({ candidates: [], more });
});

test('an option that may stand alone may be followed by another one', () => {
  expect(values('serve', 'status', '--endpoint', '--w')).toEqual(['--watch']);
});

test('no words break it', () => {
  const word = fc.oneof(fc.string(), fc.constantFrom('serve', 'up', 'down', '--', '--env', '-n', '=', ''));
  fc.assert(
    fc.property(fc.array(word), (words) => {
      complete(...words);
    }),
  );
});
