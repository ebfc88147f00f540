import { isoTime } from '../shared/clock.ts';
import { oneLine, padTo } from './display-text.ts';

/** The fields of a line of the balancer's access log that are shown; see balancer/access-record.ts. */
interface AccessFields {
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly outcome: string;
  readonly total_ms: number;
  readonly code?: string;
  readonly replica?: number;
  readonly reason?: string;
  readonly load?: number;
  readonly attempts?: number;
}

/**
 * One line of the access log for people: when (UTC), status, time, replica, request, and what was unusual about it. A line that is not
 * understood, perhaps written by another version, is shown as it is.
 */
export function renderAccessLine(line: string): string {
  const fields = parseLine(line);
  if (fields === undefined) return oneLine(line);
  const { at, method, path, status, outcome, total_ms: totalMs, code, replica, reason, load, attempts = 1 } = fields;
  const notes = [
    ...(outcome === 'ok' ? [] : [code === undefined ? outcome : `${outcome}: ${code}`]),
    ...(attempts > 1 ? [`${attempts} attempts`] : []),
    ...(reason === undefined ? [] : [`${reason}, ${load ?? 0} in flight`]),
  ];
  const cells = [
    isoTime(at).replace('T', ' '),
    status === 0 ? '---' : String(status),
    padTo(formatMs(totalMs), 8),
    padTo(replica === undefined ? '-' : `replica ${replica}`, 10),
    `${oneLine(method)} ${oneLine(path)}`,
    notes.length === 0 ? '' : `(${notes.join('; ')})`,
  ];
  return cells.join('  ').trimEnd();
}

function formatMs(ms: number): string {
  return ms < 1_000 ? `${ms.toFixed(1)} ms` : `${(ms / 1_000).toFixed(2)} s`;
}

function parseLine(line: string): AccessFields | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isAccessFields(value) ? value : undefined;
  } catch {
    // Not JSON: half a line, at the start of a tail.
    return undefined;
  }
}

const numbers = ['at', 'status', 'total_ms'];
const texts = ['method', 'path', 'outcome'];

function isAccessFields(value: unknown): value is AccessFields {
  if (typeof value !== 'object' || value === null) return false;
  const fields = new Map<string, unknown>(Object.entries(value));
  return numbers.every((name) => typeof fields.get(name) === 'number') && texts.every((name) => typeof fields.get(name) === 'string');
}
