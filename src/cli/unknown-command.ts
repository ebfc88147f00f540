import { didYouMean } from '../shared/did-you-mean.ts';
import { SvcError } from '../shared/errors.ts';
import type { Command, CommandGroup } from './command.ts';

/** Commands of other tools, and their equivalents in svc. */
export const otherWords: Readonly<Record<string, string>> = {
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
  apply: 'serve update',
  edit: 'serve update',
  scale: 'serve update',
  replace: 'serve update',
  rollout: 'serve update',
  upgrade: 'serve update',
};

interface CommandTable {
  readonly commands: readonly Command[];
  readonly groups: readonly CommandGroup[];
}

/** SVC_USAGE for an unknown command of a group (`[]`: right after `svc`), with the command that was probably meant. */
export function unknownCommand(group: readonly string[], word: string, table: CommandTable): SvcError {
  const help = ['svc', ...group, '--help'].join(' ');
  const paths = table.commands.filter(({ hidden }) => hidden !== true).map(({ path }) => path);
  const inGroup = paths.filter((path) => path.length === group.length + 1 && group.every((part, index) => path[index] === part));
  const available = [...inGroup.map((path) => path.at(-1) ?? ''), ...(group.length === 0 ? table.groups.map(({ name }) => name) : [])];
  const command = sameInOtherGroup(group, word, available, paths);
  const similar = didYouMean(word, available);
  const hint =
    command !== undefined
      ? `Did you mean: svc ${command}; all commands: ${help}`
      : `${similar === undefined ? '' : `Did you mean '${similar}'? `}Run: ${help}`;
  return new SvcError('SVC_USAGE', `Unknown command '${word}'.`, { hint });
}

/** A command of another group with the same name or meaning: a better suggestion than a similar spelling. */
function sameInOtherGroup(
  group: readonly string[],
  word: string,
  available: readonly string[],
  paths: readonly (readonly string[])[],
): string | undefined {
  const translated = Object.hasOwn(otherWords, word) ? otherWords[word] : undefined;
  const verb = translated?.split(' ').at(-1) ?? '';
  if (group.length > 0 && available.includes(verb)) return [...group, verb].join(' ');
  return paths.find((path) => path.at(-1) === word)?.join(' ') ?? translated;
}
