import { expect, test } from 'vitest';
import { commandGroups, commands } from '../../src/cli/command-table.ts';
import { longName, type Command } from '../../src/cli/command.ts';
import { commandsOf, pages } from './markdown.ts';
import { maskSource } from './mask-source.ts';
import { lineOf, productSources } from './source-tree.ts';

/** Returns the command that the words begin with; the longest path wins. */
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

/** Returns the problem of a command on a page; undefined when the CLI accepts it. */
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

test('every command in the docs exists with its options', () => {
  const wrong = pages.flatMap((page) =>
    commandsOf(page).flatMap(({ words, line }) => {
      const problem = problemOf(words);
      return problem === undefined ? [] : [`${page.path}:${line}: svc ${words.join(' ')}: ${problem}`];
    }),
  );
  expect(wrong).toEqual([]);
});

test('the docs contain enough commands for a meaningful check', () => {
  expect(pages.flatMap((page) => commandsOf(page)).length).toBeGreaterThan(40);
});

/** A command in a text of the program. */
interface NamedCommand {
  readonly words: readonly string[];
  readonly offset: number;
}

/** Matches one word of a command; a placeholder counts as one word. */
const word = String.raw`(?:\$\{[^}]*\}|[^\s|#;&()"'\`,$])+`;
const inTexts = new RegExp(String.raw`(?<![\w/.-])svc((?: +${word})+)`, 'g');

/** Words before a command, as opposed to a sentence about svc. */
const beforeCommand = /(?:[:;(`]|\bthen|\bwith|\b[Rr]un) ?$/;

/** Words that follow `svc` in a sentence where a command could stand. */
const sentenceWords: readonly string[] = ['has', 'knows', 'on', 'replaces'];

/** Finds every `svc …` in the texts of a source: known first words, and positions where a command stands. */
function commandsInTexts(source: string): readonly NamedCommand[] {
  const { withoutComments, codeOnly } = maskSource(source);
  return [...withoutComments.matchAll(inTexts)].flatMap((match) => {
    const all = (match[1] ?? '').trim().split(/ +/);
    // The end of a sentence ends the command.
    const last = all.findIndex((one) => /[^.][.:]$/.test(one));
    const words = all.slice(0, last < 0 ? all.length : last + 1).map((one) => one.replace(/(?<=[^.])[.:]$/, ''));
    const [first = ''] = words;
    // Skips parts that are only known at run time, and code.
    if (first.startsWith('${') || codeOnly.startsWith('svc', match.index)) return [];
    const isOurs = commandGroups.some(({ name }) => name === first) || commands.some(({ path: [own] }) => own === first);
    if (sentenceWords.includes(first)) return [];
    return isOurs || beforeCommand.test(withoutComments.slice(0, match.index)) ? [{ words, offset: match.index }] : [];
  });
}

/** The same check for a command of a text, where a placeholder may replace a word. */
function problemOfNamed(words: readonly string[]): string | undefined {
  return words[1]?.startsWith('${') === true && commandGroups.some(({ name }) => name === words[0]) ? undefined : problemOf(words);
}

test('every command in an error, hint or other text exists with its options', () => {
  const wrong = productSources.flatMap(({ path, text }) =>
    commandsInTexts(text).flatMap(({ words, offset }) => {
      const problem = problemOfNamed(words);
      return problem === undefined ? [] : [`${path}:${lineOf(text, offset)}: svc ${words.join(' ')}: ${problem}`];
    }),
  );
  expect(wrong).toEqual([]);
});

test('texts of the program contain enough commands for a meaningful check', () => {
  expect(productSources.flatMap(({ text }) => commandsInTexts(text)).length).toBeGreaterThan(120);
});

test.for([
  ["hint: 'Run: svc serve polish NAME'", 'there is no such command'],
  ['hint: `To mend it: svc mend ${name}; then go on`', 'there is no such command'],
  ["hint: 'Do it (svc serve down --force)'", 'it has no option --force'],
  ["const said = 'What svc needs on a cluster';", undefined],
  ["/** Once: svc serve update. */ const hint = 'svc serve down NAME, and svc controller down.';", undefined],
] as const)('%s: %s', ([source, problem]) => {
  expect(
    commandsInTexts(source)
      .map(({ words }) => problemOfNamed(words))
      .find((one) => one !== undefined),
  ).toBe(problem);
});

test.for([
  ['serve upp x.yaml', 'there is no such command'],
  ['serve down x --force', 'it has no option --force'],
])('svc %s: %s', ([words = '', problem]) => {
  expect(problemOf(words.split(' '))).toBe(problem);
});
