import type { EventView } from '../api/contract.ts';
import { wrapText } from './command-text.ts';
import { oneLine, padTo, truncateMiddle } from './display-text.ts';
import { reasonRows, toneOf } from './service-listing.ts';
import type { Ui } from './ui.ts';

/** Columns for whom an event is about and for the state it led to: the longest of both that are usual. */
const subjectWidth = 11;
const stateWidth = 15;

/** Where further lines of a long message begin: below what the event is about, so that enough room is left for it. */
const eventIndent = 22;

/** One event as a line: when (UTC), what it is about, the state it led to, and why; `indent` stands before it. */
export function renderEvent(event: EventView, ui: Pick<Ui, 'paint' | 'outWidth'>, indent = ''): string {
  const subject = padTo(event.replicaId === null ? 'service' : `replica ${event.replicaId}`, subjectWidth);
  const state = event.to === null ? padTo('', stateWidth) : ui.paint(toneOf(event.to), padTo(event.to, stateWidth));
  const at = event.at.slice(0, 19).replace('T', ' ');
  const line = `${indent}${ui.paint('quiet', `${at}Z`)}  ${subject}  ${state}  ${oneLine(event.message)}`;
  return wrapText(line, ui.outWidth, indent.length + eventIndent);
}

/** The same for somebody who watches it happen: without the time, in at most `width` columns, and in short. */
export function renderLiveEvent(event: EventView, width: number): string {
  const subject = padTo(event.replicaId === null ? 'service' : `replica ${event.replicaId}`, subjectWidth);
  return wrapText(truncateMiddle(`  ${subject}  ${oneLine(event.message)}`, reasonRows * width), width, subjectWidth + 4);
}

/** Causes of events that say nothing to somebody who waits for a service: what `up` has said itself, our processes, and what follows from replicas. */
const quietCauses: readonly string[] = ['up', 'balancer-up', 'reconciler-up', 'derived'];

/** Whether an event is worth a line while a service comes up. */
export function isStep(event: EventView): boolean {
  return event.replicaId !== null || !quietCauses.includes(event.cause);
}
