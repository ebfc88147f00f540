import { expect, test } from 'vitest';
import { Screen } from '../../test/support/cli-world.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { plainProgress, terminalProgress } from './progress.ts';

const clear = '\r\u001B[2K';

test('on a terminal the last line moves, and what stays is put above it', async () => {
  const clock = new FakeClock();
  const screen = new Screen(true, 40);
  const progress = terminalProgress(screen, clock);
  progress.now('Waiting');
  await clock.advance(2_000);
  expect(screen.text.split(clear).at(-1)).toMatch(/^\S Waiting \(2s\)$/);
  progress.line('Replica 1 is ready.');
  expect(screen.text).toContain(`${clear}Replica 1 is ready.\n${clear}`);
  progress.stop();
  progress.stop();
  expect(screen.text.endsWith(clear)).toBe(true);
  expect(clock.pendingTimers).toBe(0);
});

test('the moving line leaves room for the ^C of the terminal, so that it never wraps', () => {
  const screen = new Screen(true, 20);
  terminalProgress(screen, new FakeClock()).now('x'.repeat(100));
  expect(screen.text.split(clear).at(-1)).toHaveLength(17);
});

test('a terminal without a window is taken for a usual one', () => {
  const screen = new Screen(true, 0);
  terminalProgress(screen, new FakeClock()).now('Waiting');
  expect(screen.text).toContain('Waiting (0s)');
});

test('a line before anything moves clears nothing', () => {
  const screen = new Screen(true, 40);
  terminalProgress(screen, new FakeClock()).line('first');
  expect(screen.text).toBe('first\n');
});

test('elsewhere only whole lines are written', () => {
  const screen = new Screen(false, 80);
  const progress = plainProgress(screen);
  progress.now('Waiting');
  progress.line('Replica 1 is ready.');
  progress.stop();
  expect(screen.text).toBe('Replica 1 is ready.\n');
});
