import { SvcError } from '../../shared/errors.ts';
import { completionScripts, shells } from '../completion-scripts.ts';
import type { CommandContext } from '../context.ts';

interface CompletionArgs {
  readonly shell: string;
}

/** `svc completion`: the script for one shell. */
export async function completion(args: CompletionArgs, { ui }: CommandContext): Promise<void> {
  const shell = shells.find((known) => known === args.shell);
  if (shell === undefined) {
    throw new SvcError('SVC_USAGE', `There is no completion for '${args.shell}'.`, { hint: `Shells are: ${shells.join(', ')}.` });
  }
  ui.write(completionScripts[shell]);
}
