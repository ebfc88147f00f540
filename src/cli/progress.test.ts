import { expect, test } from 'vitest';
import { Screen } from '../../test/support/cli-world.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { patientProgress, plainProgress, terminalProgress } from './progress.ts';

const clear = '\r\u001B[2K';

test('on a terminal, permanent lines are printed above the live line', async () => {
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

test("the live line leaves columns free for the terminal's ^C", () => {
  const screen = new Screen(true, 20);
  terminalProgress(screen, new FakeClock()).now('x'.repeat(100));
  expect(screen.text.split(clear).at(-1)).toHaveLength(17);
});

test('a terminal that reports no width counts as 80 columns wide', () => {
  const screen = new Screen(true, 0);
  terminalProgress(screen, new FakeClock()).now('Waiting');
  expect(screen.text).toContain('Waiting (0s)');
});

test('a line before the first step clears nothing', () => {
  const screen = new Screen(true, 40);
  terminalProgress(screen, new FakeClock()).line('first');
  expect(screen.text).toBe('first\n');
});

test('without a terminal, only whole lines are written', () => {
  const screen = new Screen(false, 80);
  const progress = plainProgress(screen, new FakeClock());
  progress.now('Waiting');
  progress.line('Replica 1 is ready.');
  progress.stop();
  expect(screen.text).toBe('Replica 1 is ready.\n');
});

test('without a terminal, a step longer than two seconds is printed once', async () => {
  const clock = new FakeClock();
  const screen = new Screen(false, 80);
  const progress = plainProgress(screen, clock);
  progress.now('Asking');
  await clock.advance(1_900);
  progress.now('Waiting');
  await clock.advance(1_900);
  expect(screen.text).toBe('');
  progress.now('Waiting');
  await clock.advance(10_000);
  expect(screen.text).toBe('Waiting...\n');
  progress.now('Asking again');
  progress.stop();
  expect(clock.pendingTimers).toBe(0);
});

test('a short wait shows nothing; a longer one shows the latest text', async () => {
  const clock = new FakeClock();
  const screen = new Screen(true, 40);
  const progress = patientProgress(terminalProgress(screen, clock), clock);
  progress.now('Asking');
  await clock.advance(1_900);
  progress.now('Waiting');
  expect(screen.text).toBe('');
  await clock.advance(100);
  expect(screen.text).toContain('Waiting');
  expect(screen.text).not.toContain('Asking');
  progress.stop();
  expect([screen.text.endsWith(clear), clock.pendingTimers]).toEqual([true, 0]);
});
