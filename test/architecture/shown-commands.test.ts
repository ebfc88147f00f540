import { expect, test } from 'vitest';
import { commandGroups, commands } from '../../src/cli/command-table.ts';
import { longName, type Command } from '../../src/cli/command.ts';
import { commandsOf, pages } from './markdown.ts';
import { maskSource } from './mask-source.ts';
import { lineOf, productSources } from './source-tree.ts';

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

/** A command as a text of the program names it. */
interface NamedCommand {
  readonly words: readonly string[];
  readonly offset: number;
}

/** One word of a command in a text: what is filled in when the text is made is one as well. */
const word = String.raw`(?:\$\{[^}]*\}|[^\s|#;&()"'\`,$])+`;
const inTexts = new RegExp(String.raw`(?<![\w/.-])svc((?: +${word})+)`, 'g');

/** What comes before a command, rather than before a sentence about svc. */
const beforeCommand = /(?:[:;(`]|\bthen|\bwith|\b[Rr]un) ?$/;

/** What follows in a sentence about svc that stands where a command could. */
const sentenceWords: readonly string[] = ['has', 'knows', 'on', 'replaces'];

/** Every `svc …` in the texts of a source: what begins with a word of ours, and what stands where a command does. */
function commandsInTexts(source: string): readonly NamedCommand[] {
  const { withoutComments, codeOnly } = maskSource(source);
  return [...withoutComments.matchAll(inTexts)].flatMap((match) => {
    const all = (match[1] ?? '').trim().split(/ +/);
    // Where a sentence ends, the command does.
    const last = all.findIndex((one) => /[^.][.:]$/.test(one));
    const words = all.slice(0, last < 0 ? all.length : last + 1).map((one) => one.replace(/(?<=[^.])[.:]$/, ''));
    const [first = ''] = words;
    // What is only known when the text is made, and code.
    if (first.startsWith('${') || codeOnly.startsWith('svc', match.index)) return [];
    const isOurs = commandGroups.some(({ name }) => name === first) || commands.some(({ path: [own] }) => own === first);
    if (sentenceWords.includes(first)) return [];
    return isOurs || beforeCommand.test(withoutComments.slice(0, match.index)) ? [{ words, offset: match.index }] : [];
  });
}

/** The same for a command of a text, where a word may be filled in later. */
function problemOfNamed(words: readonly string[]): string | undefined {
  return words[1]?.startsWith('${') === true && commandGroups.some(({ name }) => name === words[0]) ? undefined : problemOf(words);
}

test('every command that an error, a hint or another text of the program names exists, with its options', () => {
  const wrong = productSources.flatMap(({ path, text }) =>
    commandsInTexts(text).flatMap(({ words, offset }) => {
      const problem = problemOfNamed(words);
      return problem === undefined ? [] : [`${path}:${lineOf(text, offset)}: svc ${words.join(' ')}: ${problem}`];
    }),
  );
  expect(wrong).toEqual([]);
});

test('enough commands are found in texts for the check to mean something', () => {
  expect(productSources.flatMap(({ text }) => commandsInTexts(text)).length).toBeGreaterThan(120);
});

test.for([
  ["hint: 'Run: svc serve update NAME'", 'there is no such command'],
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
