import { commandGroups, commands } from '../command-table.ts';
import {
  type ArgumentSpec,
  type Command,
  type CommandGroup,
  type Completes,
  type OptionSpec,
  longName,
  type CommandContext,
} from '../command.ts';
import { shells } from './completion.ts';
import { oneLine } from '../listing/display-text.ts';

interface CompleteArgs {
  readonly words: readonly string[];
}

/** `svc complete`: answers the completion scripts. Never starts a controller, never fails: errors offer nothing. */
export async function complete(args: CompleteArgs, context: CommandContext): Promise<void> {
  const { ui } = context;
  const { candidates, more } = completeWords(args.words, { commands, groups: commandGroups });
  const current = args.words.at(-1) ?? '';
  const names = more === undefined ? [] : (await candidatesOf(more, context)).filter(({ value }) => value.startsWith(current));
  for (const { value, summary } of [...candidates, ...names]) ui.print(`${value}\t${oneLine(summary)}`);
  ui.print(more === 'file' ? ':files' : more === 'folder' ? ':folders' : ':none');
}

async function candidatesOf(kind: Completes, { connection }: CommandContext): Promise<readonly Candidate[]> {
  if (kind === 'file' || kind === 'folder') return [];
  if (kind === 'shell') return shells.map((value) => ({ value, summary: '' }));
  try {
    if (kind === 'provider') {
      const { providerNames } = await import('../../providers/registry.ts');
      return providerNames.map((value) => ({ value, summary: '' }));
    }
    const api = await connection.running();
    if (api === undefined) return [];
    const found = kind === 'service' ? (await api.call('listServices')).services : (await api.call('listClusters')).clusters;
    return found.map(({ name, status }) => ({ value: name, summary: status }));
  } catch {
    // An error message would disturb the command line at Tab.
    return [];
  }
}

interface Candidate {
  readonly value: string;
  readonly summary: string;
}

/** Completions at the cursor: candidates, or a kind of value that the shell or the controller completes. */
export interface Completion {
  readonly candidates: readonly Candidate[];
  readonly more: Completes | undefined;
}

interface CompletionTable {
  readonly commands: readonly Command[];
  readonly groups: readonly CommandGroup[];
}

const nothing: Completion = { candidates: [], more: undefined };

/** Completions for the last of `words`, which may be empty: all words between `svc` and the cursor. */
export function completeWords(words: readonly string[], table: CompletionTable): Completion {
  const current = words.at(-1) ?? '';
  // bash splits `--name=x` into three words.
  const before = words.slice(0, -1).filter((word) => word !== '=');
  const { command, rest } = findCommand(before, table);
  if (command === undefined) return { candidates: startingWith(current, subcommands(rest, table)), more: undefined };

  let expected: OptionSpec | undefined;
  let position = 0;
  for (const word of rest) {
    if (word === '--') return nothing;
    if (word.startsWith('-')) expected = takesValue(optionOf(command, word)) && !word.includes('=') ? optionOf(command, word) : undefined;
    else if (expected !== undefined) expected = undefined;
    else position += 1;
  }
  const optional = expected?.kind === 'optionalValue';
  if (expected !== undefined && !(optional && current.startsWith('-'))) return { candidates: [], more: completesOf(expected) };
  if (current.startsWith('-')) return { candidates: startingWith(current, optionNames(command)), more: undefined };
  return { candidates: [], more: argumentAt(command, position)?.completes };
}

function findCommand(
  words: readonly string[],
  table: CompletionTable,
): { readonly command: Command | undefined; readonly rest: readonly string[] } {
  const command = table.commands.find(({ path }) => path.every((part, index) => words[index] === part));
  return { command, rest: command === undefined ? words : words.slice(command.path.length) };
}

function subcommands(words: readonly string[], { commands: all, groups }: CompletionTable): readonly Candidate[] {
  const visible = all.filter(({ hidden }) => hidden !== true);
  const [group] = words;
  if (words.length > 1) return [];
  if (group !== undefined) {
    return visible.flatMap(({ path, summary }) => (path[0] === group && path[1] !== undefined ? [{ value: path[1], summary }] : []));
  }
  const top = visible.flatMap(({ path, summary }) => (path.length === 1 ? [{ value: path[0], summary }] : []));
  return [...groups.map(({ name, summary }) => ({ value: name, summary })), ...top];
}

function optionNames({ options }: Command): readonly Candidate[] {
  const named = Object.entries(options).flatMap(([key, option]) => {
    const on = { value: `--${longName(key)}`, summary: option.summary };
    return option.kind === 'switch' ? [on, { value: `--no-${longName(key)}`, summary: option.offSummary }] : [on];
  });
  return [...named, { value: '--help', summary: 'show this help' }];
}

function optionOf({ options }: Command, word: string): OptionSpec | undefined {
  const [name] = word.split('=');
  return Object.entries(options).find(
    ([key, { short }]) => name === `--${longName(key)}` || (short !== undefined && name === `-${short}`),
  )?.[1];
}

function takesValue(option: OptionSpec | undefined): boolean {
  return option !== undefined && option.kind !== 'flag' && option.kind !== 'switch';
}

function completesOf(option: OptionSpec): Completes | undefined {
  return option.kind === 'flag' || option.kind === 'switch' ? undefined : option.completes;
}

function argumentAt(command: Command, position: number): ArgumentSpec | undefined {
  const specs = Object.values(command.arguments);
  const last = specs.at(-1);
  return specs[position] ?? (last?.kind === 'many' ? last : undefined);
}

function startingWith(prefix: string, candidates: readonly Candidate[]): readonly Candidate[] {
  return candidates.filter(({ value }) => value.startsWith(prefix));
}
