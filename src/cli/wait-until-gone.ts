import { SvcError } from '../shared/errors.ts';
import type { CommandContext } from './context.ts';

const everyMs = 250;

/** A service or cluster that is being terminated, as a listing shows it. */
export interface TerminatingItem {
  readonly name: string;
  readonly status: string;
  /** Its remaining resources, for the progress line. */
  readonly left: string;
  /** Distinguishes successive services or clusters with the same name. */
  readonly createdAt: string;
  readonly reason: string | null;
}

/** States that only manual action ends. */
const stuckStates: readonly string[] = ['FAILED_CLEANUP'];

/**
 * Waits until no item of `terminating` is listed, and prints a line for each that disappears. Ctrl-C ends the wait, not
 * the termination. Throws when something could not be removed; the hint is `purge`, the command that forgets it.
 */
export async function waitUntilGone(
  terminating: readonly TerminatingItem[],
  list: () => Promise<readonly TerminatingItem[]>,
  purge: string,
  context: CommandContext,
): Promise<void> {
  const { ui, clock, signal } = context;
  const progress = ui.progress();
  let waiting = terminating;
  try {
    while (!signal.aborted) {
      const now = await list();
      const still = waiting.flatMap((each) => now.filter(({ name, createdAt }) => name === each.name && createdAt === each.createdAt));
      for (const { name } of waiting) if (!still.some((each) => each.name === name)) progress.line(`${name} is gone.`);
      waiting = still;
      if (waiting.length === 0) return;
      const stuck = waiting.filter(({ status }) => stuckStates.includes(status));
      const [first] = stuck;
      // Waits for the others first: a stuck item says nothing about them.
      if (first !== undefined && stuck.length === waiting.length) throw stuckError(first, purge);
      progress.now(`Taking down ${waiting.map(({ name, left }) => `${name} (${left})`).join(', ')}`);
      await clock.sleep(everyMs, signal);
    }
    progress.stop();
    ui.say('No longer waiting; it goes on in the background.');
  } finally {
    progress.stop();
  }
}

function stuckError(stuck: TerminatingItem, purge: string): SvcError {
  const why = stuck.reason === null ? '' : `: ${stuck.reason}`;
  return new SvcError('SVC_CLEANUP_FAILED', `'${stuck.name}' could not be removed completely${why}`, {
    hint: `Correct the cause and run it again, or forget it: ${purge.replace('NAME', stuck.name)}`,
  });
}
