import fc from 'fast-check';
import { expect, test } from 'vitest';
import { commandGroups as groups, commands } from './command-table.ts';
import { type Completion, completeWords } from './commands/complete.ts';

const complete = (...words: readonly string[]): Completion => completeWords(words, { commands, groups });
const values = (...words: readonly string[]): readonly string[] => complete(...words).candidates.map(({ value }) => value);

test('commands are offered in the order of help, without hidden ones', () => {
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
    'simulate',
    'completion',
  ]);
  expect(values('c')).toEqual(['controller', 'catalog', 'check', 'completion']);
  expect(values('serve', 't')).toEqual(['terminate-replica']);
});

test('options of a command are offered, including both forms of a switch', () => {
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
])('after %s the completion is %s', ([words, more]) => {
  expect(complete(...words)).toEqual({ candidates: [], more });
});

test('an option with an optional value can be followed by another option', () => {
  expect(values('serve', 'status', '--endpoint', '--w')).toEqual(['--watch']);
});

test('no words cause an exception', () => {
  const word = fc.oneof(fc.string(), fc.constantFrom('serve', 'up', 'down', '--', '--env', '-n', '=', ''));
  fc.assert(
    fc.property(fc.array(word), (words) => {
      complete(...words);
    }),
  );
});
