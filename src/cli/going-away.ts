import { SvcError } from '../shared/errors.ts';
import type { CommandContext } from './context.ts';

const everyMs = 250;

/** One thing on its way out, as a listing shows it. */
export interface Leaving {
  readonly name: string;
  readonly status: string;
  /** What is left of it, for the progress line. */
  readonly left: string;
  /** Tells apart things that had the name one after the other. */
  readonly createdAt: string;
  readonly reason: string | null;
}

/** States in which nothing more will happen by itself. */
const stuckStates: readonly string[] = ['FAILED_CLEANUP'];

/**
 * Waits until nothing of `leaving` is listed any more, with a line for each that has gone. Ctrl-C ends the wait, not what is awaited.
 * Throws when something could not be removed, with `purge` as the command that forgets it.
 */
export async function waitUntilGone(
  leaving: readonly Leaving[],
  list: () => Promise<readonly Leaving[]>,
  purge: string,
  context: CommandContext,
): Promise<void> {
  const { ui, clock, signal } = context;
  const progress = ui.progress();
  let waiting = leaving;
  try {
    while (!signal.aborted) {
      const now = await list();
      const still = waiting.flatMap((each) => now.filter(({ name, createdAt }) => name === each.name && createdAt === each.createdAt));
      for (const { name } of waiting) if (!still.some((each) => each.name === name)) progress.line(`${name} is gone.`);
      waiting = still;
      if (waiting.length === 0) return;
      const stuck = waiting.filter(({ status }) => stuckStates.includes(status));
      const [first] = stuck;
      // The others are waited for first: one that is stuck says nothing about them.
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

function stuckError(stuck: Leaving, purge: string): SvcError {
  const why = stuck.reason === null ? '' : `: ${stuck.reason}`;
  return new SvcError('SVC_CLEANUP_FAILED', `'${stuck.name}' could not be removed completely${why}`, {
    hint: `Mend the cause and run it again, or forget it: ${purge.replace('NAME', stuck.name)}`,
  });
}
