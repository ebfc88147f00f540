import type { CancelTimer, Clock } from '../shared/clock.ts';
import { formatDuration } from './listing/format-values.ts';
import { oneLine, truncate } from './listing/display-text.ts';
import { columnsOf, type OutputStream } from './streams.ts';

/** Shows long-running work. A terminal gets a live last line; other outputs get only whole lines. */
export interface Progress {
  /** Sets the current step. Without a terminal, a step becomes a line only when it takes long. */
  now(text: string): void;
  /** Prints a permanent line. */
  line(text: string): void;
  /** Removes the live line. May be called again. */
  stop(): void;
}

/** A step that takes longer than this, ms, is printed. */
const lastsMs = 2_000;

/** Plain lines, for pipes and files. */
export function plainProgress(stream: OutputStream, clock: Clock): Progress {
  let current: string | undefined;
  let cancel: CancelTimer | undefined;
  const stop = (): void => {
    cancel?.();
    current = undefined;
  };
  return {
    now(text) {
      if (text === current) return;
      stop();
      current = text;
      cancel = clock.after(lastsMs, () => void stream.write(`${oneLine(text)}...\n`));
    },
    line: (text) => void stream.write(`${text}\n`),
    stop,
  };
}

/** The same for waits that are mostly short: a short wait shows nothing. */
export function patientProgress(progress: Progress, clock: Clock): Progress {
  let latest = '';
  let hasBegun = false;
  let cancel: CancelTimer | undefined;
  return {
    now(text) {
      latest = text;
      if (hasBegun) progress.now(text);
      cancel ??= clock.after(lastsMs, () => {
        hasBegun = true;
        progress.now(latest);
      });
    },
    line: (text) => progress.line(text),
    stop() {
      cancel?.();
      progress.stop();
    },
  };
}

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const frameMs = 100;
const clearLine = '\r\u001B[2K';

/** Columns that stay free for the terminal's `^C`: a live line that wraps could not be erased. */
const margin = 3;

/** A spinner with the elapsed time, below the permanent lines. */
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
