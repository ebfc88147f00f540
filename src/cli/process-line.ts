import { oneLine, padTo } from './display-text.ts';
import type { Tone, Ui } from './ui.ts';

/** By pino's numbers. */
const levels: ReadonlyMap<number, readonly [string, Tone]> = new Map([
  [30, ['info', 'quiet']],
  [40, ['warn', 'busy']],
  [50, ['error', 'bad']],
  [60, ['fatal', 'bad']],
]);

/** A line that one of our processes logged, for people: when (UTC), how bad, what, and the message of the error; undefined when it is none. */
export function renderProcessLine(line: string, ui: Pick<Ui, 'paint'>): string | undefined {
  const fields = readFields(line);
  const level = levels.get(Number(fields?.get('level')));
  const at = fields?.get('time');
  const message = fields?.get('msg');
  if (level === undefined || typeof at !== 'string' || typeof message !== 'string') return undefined;
  const [name, tone] = level;
  const error = messageIn(fields?.get('err'));
  const text = error === undefined ? message : `${message}: ${error}`;
  return `${ui.paint('quiet', oneLine(at).slice(0, 19).replace('T', ' '))}  ${ui.paint(tone, padTo(name, 5))}  ${oneLine(text)}`;
}

function readFields(line: string): ReadonlyMap<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? new Map<string, unknown>(Object.entries(value)) : undefined;
  } catch {
    // Not JSON, such as what Node.js says when a process cannot start.
    return undefined;
  }
}

function messageIn(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('message' in error)) return undefined;
  return typeof error.message === 'string' ? error.message : undefined;
}
