import { commandGroups, commands } from '../command-table.ts';
import type { Completes } from '../command.ts';
import { completeWords, type Candidate } from '../complete-words.ts';
import { shells } from '../completion-scripts.ts';
import type { CommandContext } from '../context.ts';
import { oneLine } from '../display-text.ts';

interface CompleteArgs {
  readonly words: readonly string[];
}

/** `svc complete`: answers the completion scripts. Never starts anything and never fails: at worst there is nothing to offer. */
export async function complete(args: CompleteArgs, context: CommandContext): Promise<void> {
  const { ui } = context;
  const { candidates, more } = completeWords(args.words, { commands, groups: commandGroups });
  const current = args.words.at(-1) ?? '';
  const names = more === undefined ? [] : (await lookUp(more, context)).filter(({ value }) => value.startsWith(current));
  for (const { value, summary } of [...candidates, ...names]) ui.print(`${value}\t${oneLine(summary)}`);
  ui.print(more === 'file' ? ':files' : more === 'folder' ? ':folders' : ':none');
}

async function lookUp(kind: Completes, { connection }: CommandContext): Promise<readonly Candidate[]> {
  if (kind === 'file' || kind === 'folder') return [];
  if (kind === 'shell') return shells.map((value) => ({ value, summary: '' }));
  try {
    if (kind === 'place') {
      const { providerNames } = await import('../../providers/registry.ts');
      return providerNames.map((value) => ({ value, summary: '' }));
    }
    const api = await connection.running();
    if (api === undefined) return [];
    const found = kind === 'service' ? (await api.call('listServices')).services : (await api.call('listClusters')).clusters;
    return found.map(({ name, status }) => ({ value: name, summary: status }));
  } catch {
    // Tab is no place for error messages.
    return [];
  }
}
