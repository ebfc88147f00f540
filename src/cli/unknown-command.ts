import { didYouMean } from '../shared/did-you-mean.ts';
import type { Command, CommandGroup } from './command.ts';

/** What users of other tools type, and what it is here. */
const otherWords: Readonly<Record<string, string>> = {
  ps: 'status',
  ls: 'status',
  list: 'status',
  get: 'status',
  deploy: 'serve up',
  create: 'serve up',
  start: 'serve up',
  rm: 'serve down',
  delete: 'serve down',
  stop: 'serve down',
  terminate: 'serve terminate-replica',
  run: 'launch',
  ssh: 'exec',
};

/**
 * What was probably meant by a word that is no command of its group (`[]` for the words right after `svc`), as a hint's first half: a
 * command that can be typed where one is sure, else the word that is written alike.
 */
export function suggestCommand(
  group: readonly string[],
  word: string,
  table: { readonly commands: readonly Command[]; readonly groups: readonly CommandGroup[] },
): string | undefined {
  const paths = table.commands.filter(({ hidden }) => hidden !== true).map(({ path }) => path);
  const names = paths.filter((path) => path.length === group.length + 1 && group.every((part, index) => path[index] === part));
  const here = [...names.map((path) => path.at(-1) ?? ''), ...(group.length === 0 ? table.groups.map(({ name }) => name) : [])];
  // A whole word elsewhere says more than a similar one here.
  const elsewhere = paths.find((path) => path.at(-1) === word);
  const translated = Object.hasOwn(otherWords, word) ? otherWords[word] : undefined;
  const verb = translated?.split(' ').at(-1) ?? '';
  const command = group.length > 0 && here.includes(verb) ? [...group, verb].join(' ') : (elsewhere?.join(' ') ?? translated);
  if (command !== undefined) return `Did you mean: svc ${command};`;
  const similar = didYouMean(word, here);
  return similar === undefined ? undefined : `Did you mean '${similar}'?`;
}
