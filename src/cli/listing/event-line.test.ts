import { expect, test } from 'vitest';
import { anEventView } from '../../../test/support/views.ts';
import { renderEvent, renderLiveEvent } from './event-line.ts';

const message = `The image registry.test/web:1 cannot be fetched: ${'failed to do what another one failed to do: '.repeat(10)}not found`;
const event = anEventView({ message });

test('while a service starts, a long message is shortened but keeps its end', () => {
  const lines = renderLiveEvent(event, 80).split('\n');
  expect(lines.length).toBeLessThanOrEqual(4);
  expect(lines.every((line) => line.length <= 80)).toBe(true);
  expect(lines.join('\n')).toMatch(/^ {2}replica 1 {4}The image registry\.test\/web:1 [^]*…[^]*: not found$/);
});

test('while a service starts, a traceback is shown by its last line', () => {
  const crash = anEventView({ message: 'Its run ended with exit code 1. Its last output:\n  Traceback:\n  ModuleNotFoundError: no torch' });
  expect(renderLiveEvent(crash, 200)).toBe('  replica 1    Its run ended with exit code 1: ModuleNotFoundError: no torch');
});

test('without a terminal, and in the history, the whole message is shown', () => {
  expect(renderLiveEvent(event, Number.POSITIVE_INFINITY)).toBe(`  replica 1    ${message}`);
  const ui = { paint: (_: unknown, text: string) => text, outWidth: 80 };
  const lines = renderEvent(event, ui, '  ').split('\n');
  expect(lines[0]).toMatch(/^ {2}2030-01-01 11:58:55Z {2}replica 1/);
  expect(lines.slice(1).every((line) => line.startsWith(' '.repeat(24)) && line.length <= 80)).toBe(true);
  expect(lines.map((line) => line.trim()).join(' ')).toContain('do: not found');
  expect(lines.join(' ')).not.toContain('…');
});
