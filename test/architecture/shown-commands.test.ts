import { expect, test } from 'vitest';
import { commandGroups, commands } from '../../src/cli/command-table.ts';
import { longName, type Command } from '../../src/cli/command.ts';
import { commandsOf, pages } from './markdown.ts';

/** The command that the words begin with; the longest path wins. */
function commandFor(words: readonly string[]): Command | undefined {
  return commands
    .filter(({ path }) => path.every((word, index) => words[index] === word))
    .toSorted((a, b) => b.path.length - a.path.length)[0];
}

function flagsOf(command: Command): ReadonlySet<string> {
  const flags = Object.entries(command.options).flatMap(([key, option]) => [
    `--${longName(key)}`,
    ...(option.short === undefined ? [] : [`-${option.short}`]),
    ...(option.kind === 'switch' ? [`--no-${longName(key)}`] : []),
  ]);
  return new Set([...flags, '--help', '-h']);
}

/** What is wrong with a command as a page shows it; undefined when it would be understood. */
function problemOf(words: readonly string[]): string | undefined {
  const isGroup = commandGroups.some(({ name }) => words[0] === name && (words.length === 1 || words[1] === '…'));
  if (isGroup || words.every((word) => ['--help', '-h', '--version'].includes(word))) return undefined;
  const command = commandFor(words);
  if (command === undefined) return 'there is no such command';
  const ours = words.includes('--') ? words.slice(0, words.indexOf('--')) : words;
  const flags = flagsOf(command);
  const unknown = ours.filter((word) => /^--?[a-z]/.test(word)).find((word) => !flags.has(word.split('=')[0] ?? ''));
  return unknown === undefined ? undefined : `it has no option ${unknown}`;
}

test('every command that a page shows exists, with its options', () => {
  const wrong = pages.flatMap((page) =>
    commandsOf(page).flatMap(({ words, line }) => {
      const problem = problemOf(words);
      return problem === undefined ? [] : [`${page.path}:${line}: svc ${words.join(' ')}: ${problem}`];
    }),
  );
  expect(wrong).toEqual([]);
});

test('enough commands are found for the check to mean something', () => {
  expect(pages.flatMap((page) => commandsOf(page)).length).toBeGreaterThan(40);
});

test.for([
  ['serve upp x.yaml', 'there is no such command'],
  ['serve down x --force', 'it has no option --force'],
])('svc %s: %s', ([words = '', problem]) => {
  expect(problemOf(words.split(' '))).toBe(problem);
});
