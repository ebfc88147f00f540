import type { CommandContext } from './context.ts';

const everyMs = 1_000;

/** Erases from the cursor's line to the end of the screen. */
const eraseBelow = '\u001B[0J';

/**
 * Shows lines again and again until interrupted. On a terminal the new lines take the place of the old ones, cut to its height; elsewhere
 * they are written whenever they changed.
 */
export async function watch(read: () => Promise<readonly string[]>, context: CommandContext): Promise<void> {
  const { ui, clock, signal } = context;
  let drawn = 0;
  let before = '';
  while (!signal.aborted) {
    const lines = await read();
    if (ui.outIsTerminal) {
      // One line stays free for the cursor: a screen that scrolled could not be drawn over.
      const shown = lines.slice(0, Math.max(1, ui.outRows - 1));
      const up = drawn === 0 ? '' : `\u001B[${drawn}A`;
      ui.write(`${up}\r${eraseBelow}${shown.join('\n')}\n`);
      drawn = shown.length;
    } else if (lines.join('\n') !== before) {
      before = lines.join('\n');
      ui.write(`${before}\n`);
    }
    await clock.sleep(everyMs, signal);
  }
}
