import { isoTime } from '../../shared/clock.ts';
import { readLogTime } from '../../shared/log-time.ts';
import { displayWidth, oneLine, padTo, truncate } from './display-text.ts';
import { formatLatency } from './format-values.ts';
import type { Tone, Ui } from '../ui.ts';

/** The fields of an access log line that are shown; see `balancer/access-log/access-line.ts`. */
interface AccessFields {
  /** ms in lines of earlier versions. */
  readonly at: string | number;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly outcome: string;
  readonly total_ms: number;
  readonly first_byte_ms?: number;
  readonly queued_ms?: number;
  readonly protocol?: string;
  readonly client?: string;
  readonly code?: string;
  readonly fault?: string;
  readonly replica?: number;
  readonly place?: string;
  readonly reason?: string;
  readonly load?: number;
  readonly attempts?: number;
  readonly failed?: readonly { readonly replica: number; readonly why: string }[];
}

const widths = { time: 19, code: 4, duration: 6, replica: 13, chosen: 15 } as const;
/** Minimum columns for the request, however narrow the terminal is. */
const minRequestWidth = 20;

/** The column titles. */
export const accessTitles: string = [
  padTo('TIME (UTC)', widths.time),
  'CODE',
  'FIRST'.padStart(widths.duration),
  'TOTAL'.padStart(widths.duration),
  padTo('REPLICA', widths.replica),
  padTo('CHOSEN (LOAD)', widths.chosen),
  'REQUEST',
].join('  ');

/** Whether a line of the balancer's logs is about a request, and not about the process. */
export function isAccessLine(line: string): boolean {
  return parseLine(line) !== undefined;
}

/**
 * One line of the balancer's logs for people. For a request it has:
 * - when it arrived (UTC), its status, the time to the first byte and to the last;
 * - its replica, the replica's location, why the balancer chose it, and how many requests it had;
 * - method and path, and anything unusual.
 * A line that cannot be parsed, perhaps from another version, is shown unchanged.
 */
export function renderAccessLine(line: string, ui: Pick<Ui, 'paint' | 'outWidth'>): string {
  const fields = parseLine(line);
  if (fields === undefined) return renderProcessLine(line, ui) ?? oneLine(line);
  const { at, method, path, status, total_ms: totalMs, first_byte_ms: firstByteMs, replica, place: location, reason, load } = fields;
  const time = isoTime(readLogTime(at) ?? 0)
    .slice(0, widths.time)
    .replace('T', ' ');
  const code = padTo(status === 0 ? '---' : String(status), widths.code);
  const durations = [firstByteMs, totalMs].map((ms) => (ms === undefined ? '-' : formatLatency(ms)).padStart(widths.duration));
  const served = padTo(replica === undefined ? '-' : oneLine(`${replica} ${location ?? ''}`), widths.replica);
  const chosen = padTo(reason === undefined ? '-' : `${oneLine(reason)} (${load ?? 0})`, widths.chosen);
  const notes = notesOn(fields);
  const noteText = notes.length === 0 ? '' : `  (${notes.join('; ')})`;
  const before = [time, code, ...durations, served, chosen, ''].join('  ');
  // The balancer refused the connection, or could not parse the request.
  const request = method === '' ? '-' : oneLine(`${method} ${path}`.trimEnd());
  const room = Math.max(minRequestWidth, ui.outWidth - displayWidth(before) - displayWidth(noteText));
  const cells = [
    ui.paint('quiet', time),
    ui.paint(toneOf(fields), code),
    ...durations,
    served,
    ui.paint('quiet', chosen),
    truncate(request, room),
  ];
  return `${cells.join('  ')}${noteText === '' ? '' : ui.paint(toneOf(fields), noteText)}`;
}

function toneOf({ status, outcome }: AccessFields): Tone {
  if (outcome === 'unavailable' || outcome === 'truncated') return 'bad';
  if (outcome !== 'ok') return 'busy';
  return status >= 500 ? 'bad' : status >= 400 ? 'busy' : 'good';
}

const outcomes: ReadonlyMap<string, string> = new Map([
  ['client_gone', 'the client left'],
  ['truncated', 'the replica broke off'],
]);

function notesOn({
  outcome,
  code,
  fault,
  protocol,
  client,
  queued_ms: queuedMs = 0,
  attempts = 1,
  failed = [],
}: AccessFields): readonly string[] {
  const notes: string[] = [];
  if (outcome !== 'ok') notes.push(oneLine([outcomes.get(outcome) ?? code ?? outcome, fault].filter(Boolean).join(', ')));
  if (protocol === 'ws') notes.push('WebSocket');
  if (client !== undefined) notes.push(oneLine(`from ${client}`));
  if (queuedMs >= 1) notes.push(`waited ${formatLatency(queuedMs)}`);
  if (attempts > 1 || failed.length > 0) {
    const tries = failed.map(({ replica, why }) => oneLine(`${replica} ${why}`)).join(', ');
    notes.push(`${attempts} attempt${attempts === 1 ? '' : 's'}${tries === '' ? '' : `: ${tries}`}`);
  }
  return notes;
}

function parseLine(line: string): AccessFields | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isAccessFields(value) ? value : undefined;
  } catch {
    // Not JSON: a partial line at the start of a tail.
    return undefined;
  }
}

const numbers = ['status', 'total_ms'];
const texts = ['method', 'path', 'outcome'];

function isAccessFields(value: unknown): value is AccessFields {
  if (typeof value !== 'object' || value === null) return false;
  const fields = new Map<string, unknown>(Object.entries(value));
  const { failed = [] }: { readonly failed?: unknown } = value;
  if (!Array.isArray(failed)) return false;
  if (readLogTime(fields.get('at')) === undefined) return false;
  return numbers.every((name) => typeof fields.get(name) === 'number') && texts.every((name) => typeof fields.get(name) === 'string');
}

/** By pino's numeric levels. */
const levels: ReadonlyMap<number, readonly [string, Tone]> = new Map([
  [30, ['info', 'quiet']],
  [40, ['warn', 'busy']],
  [50, ['error', 'bad']],
  [60, ['fatal', 'bad']],
]);

/** A log line of our processes for people: time (UTC), level, message, error. Undefined when it is not a log line. */
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
    // Not JSON, such as the output of Node.js when a process cannot start.
    return undefined;
  }
}

function messageIn(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('message' in error)) return undefined;
  return typeof error.message === 'string' ? error.message : undefined;
}
