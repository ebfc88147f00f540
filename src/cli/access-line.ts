import { isoTime } from '../shared/clock.ts';
import { displayWidth, oneLine, padTo, truncate } from './display-text.ts';
import { formatLatency } from './format-time.ts';
import { renderProcessLine } from './process-line.ts';
import type { Tone, Ui } from './ui.ts';

/** The fields of a line of the balancer's access log that are shown; see balancer/access-line.ts. */
interface AccessFields {
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly outcome: string;
  readonly total_ms: number;
  readonly first_byte_ms?: number;
  readonly queued_ms?: number;
  readonly protocol?: string;
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
/** So much of a request is always shown, however narrow the terminal is. */
const minRequestWidth = 20;

/** The titles of the columns. */
export const accessTitles: string = [
  padTo('TIME (UTC)', widths.time),
  'CODE',
  'FIRST'.padStart(widths.duration),
  'TOTAL'.padStart(widths.duration),
  padTo('REPLICA', widths.replica),
  padTo('CHOSEN (LOAD)', widths.chosen),
  'REQUEST',
].join('  ');

/** Whether a line of the balancer's logs is about a request, rather than about the process. */
export function isAccessLine(line: string): boolean {
  return parseLine(line) !== undefined;
}

/**
 * One line of the balancer's logs for people. Of a request: when it arrived (UTC), its status, the time to the first byte and to the last, its
 * replica and where that runs, why it was chosen and how many requests it had, what was asked, and what was unusual. A line that is not understood,
 * perhaps written by another version, is shown as it is.
 */
export function renderAccessLine(line: string, ui: Pick<Ui, 'paint' | 'outWidth'>): string {
  const fields = parseLine(line);
  if (fields === undefined) return renderProcessLine(line, ui) ?? oneLine(line);
  const { at, method, path, status, total_ms: totalMs, first_byte_ms: firstByteMs, replica, place, reason, load } = fields;
  const time = isoTime(at).slice(0, widths.time).replace('T', ' ');
  const code = padTo(status === 0 ? '---' : String(status), widths.code);
  const durations = [firstByteMs, totalMs].map((ms) => (ms === undefined ? '-' : formatLatency(ms)).padStart(widths.duration));
  const served = padTo(replica === undefined ? '-' : oneLine(`${replica} ${place ?? ''}`), widths.replica);
  const chosen = padTo(reason === undefined ? '-' : `${oneLine(reason)} (${load ?? 0})`, widths.chosen);
  const notes = notesOn(fields);
  const noteText = notes.length === 0 ? '' : `  (${notes.join('; ')})`;
  const before = [time, code, ...durations, served, chosen, ''].join('  ');
  // The balancer refused what it could not even read.
  const request = method === '' ? '-' : oneLine(`${method} ${path}`);
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

/** What is not as usual. */
function notesOn({ outcome, code, fault, protocol, queued_ms: queuedMs = 0, attempts = 1, failed = [] }: AccessFields): readonly string[] {
  const notes: string[] = [];
  if (outcome !== 'ok') notes.push(oneLine([outcomes.get(outcome) ?? code ?? outcome, fault].filter(Boolean).join(', ')));
  if (protocol === 'ws') notes.push('WebSocket');
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
    // Not JSON: half a line, at the start of a tail.
    return undefined;
  }
}

const numbers = ['at', 'status', 'total_ms'];
const texts = ['method', 'path', 'outcome'];

function isAccessFields(value: unknown): value is AccessFields {
  if (typeof value !== 'object' || value === null) return false;
  const fields = new Map<string, unknown>(Object.entries(value));
  const { failed = [] }: { readonly failed?: unknown } = value;
  if (!Array.isArray(failed)) return false;
  return numbers.every((name) => typeof fields.get(name) === 'number') && texts.every((name) => typeof fields.get(name) === 'string');
}
