import type { CancelTimer, Clock } from '../shared/clock.ts';
import { formatDuration } from './format-time.ts';
import { oneLine, truncate } from './display-text.ts';
import { columnsOf, type OutputStream } from './streams.ts';

/** Shows work that takes a while. On a terminal a last line moves; elsewhere only whole lines are written. */
export interface Progress {
  /** What happens now; shown on a terminal only. */
  now(text: string): void;
  /** A line that stays. */
  line(text: string): void;
  /** Removes what moves. Safe to call again. */
  stop(): void;
}

/** Plain lines, for pipes and files. */
export function plainProgress(stream: OutputStream): Progress {
  return {
    now: () => undefined,
    line: (text) => void stream.write(`${text}\n`),
    stop: () => undefined,
  };
}

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const frameMs = 100;
const clearLine = '\r\u001B[2K';

/** Left free at the end of the moving line, as the terminal shows `^C` there: a line that went on below it could not be taken away. */
const margin = 3;

/** A spinner with the time since it began, below the lines that stay. */
export function terminalProgress(stream: OutputStream, clock: Clock): Progress {
  const startedAt = clock.monotonic();
  let text: string | undefined;
  let frame = 0;
  let cancel: CancelTimer | undefined;

  function draw(): void {
    if (text === undefined) return;
    const elapsed = formatDuration((clock.monotonic() - startedAt) / 1_000);
    const line = truncate(`${frames[frame % frames.length]} ${text} (${elapsed})`, columnsOf(stream) - margin);
    stream.write(`${clearLine}${line}`);
  }

  return {
    now(next) {
      text = oneLine(next);
      if (cancel === undefined) {
        cancel = clock.every(frameMs, () => {
          frame += 1;
          draw();
        });
      }
      draw();
    },
    line(permanent) {
      stream.write(cancel === undefined ? `${permanent}\n` : `${clearLine}${permanent}\n`);
      draw();
    },
    stop() {
      if (cancel === undefined) return;
      cancel();
      cancel = undefined;
      text = undefined;
      stream.write(clearLine);
    },
  };
}
