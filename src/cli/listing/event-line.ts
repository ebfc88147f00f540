import type { EventView } from '../../api/contract.ts';
import { wrapText } from '../command-text.ts';
import { oneLine, padTo, truncateMiddle } from './display-text.ts';
import { reasonRows, shortReason, toneOf } from './service-listing.ts';
import type { Ui } from '../ui.ts';

/** Widths of the columns for the subject and the state: the longest usual value of each. */
const subjectWidth = 11;
const stateWidth = 15;

/** Indentation of further lines of a long message: below the subject, which leaves enough width for the message. */
const eventIndent = 22;

/** One event as a line: time (UTC), subject, new state, and reason. `indent` is put before the line. */
export function renderEvent(event: EventView, ui: Pick<Ui, 'paint' | 'outWidth'>, indent = ''): string {
  const subject = padTo(event.replicaId === null ? 'service' : `replica ${event.replicaId}`, subjectWidth);
  const state = event.to === null ? padTo('', stateWidth) : ui.paint(toneOf(event.to), padTo(event.to, stateWidth));
  const at = event.at.slice(0, 19).replace('T', ' ');
  const line = `${indent}${ui.paint('quiet', `${at}Z`)}  ${subject}  ${state}  ${oneLine(event.message)}`;
  return wrapText(line, ui.outWidth, indent.length + eventIndent);
}

/**
 * The same in short for a user who follows the service: without the time, in at most `width` columns. Of a program's
 * output it has the last line: a crash loop would repeat a whole traceback for each replica.
 */
export function renderLiveEvent(event: EventView, width: number): string {
  const subject = padTo(event.replicaId === null ? 'service' : `replica ${event.replicaId}`, subjectWidth);
  return wrapText(truncateMiddle(`  ${subject}  ${shortReason(event.message)}`, reasonRows * width), width, subjectWidth + 4);
}

/** Causes that do not matter to a user who waits: `up`, our own processes, consequences of replica events. */
const quietCauses: readonly string[] = ['up', 'balancer-up', 'reconciler-up', 'derived'];

/** Whether an event deserves a line while a service starts. */
export function isStep(event: EventView): boolean {
  return event.replicaId !== null || !quietCauses.includes(event.cause);
}
