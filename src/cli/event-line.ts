import type { EventView } from '../api/contract.ts';
import { oneLine, padTo } from './display-text.ts';
import { toneOf } from './service-listing.ts';
import type { Ui } from './ui.ts';

/** Columns for whom an event is about and for the state it led to: the longest of both that are usual. */
const subjectWidth = 11;
const stateWidth = 15;

/** One event as a line: when (UTC), what it is about, the state it led to, and why. */
export function renderEvent(event: EventView, ui: Pick<Ui, 'paint'>): string {
  const subject = padTo(event.replicaId === null ? 'service' : `replica ${event.replicaId}`, subjectWidth);
  const state = event.to === null ? padTo('', stateWidth) : ui.paint(toneOf(event.to), padTo(event.to, stateWidth));
  const at = event.at.slice(0, 19).replace('T', ' ');
  return `${ui.paint('quiet', `${at}Z`)}  ${subject}  ${state}  ${oneLine(event.message)}`;
}

/** The same for somebody who watches it happen: without the time. */
export function renderLiveEvent(event: EventView): string {
  return `  ${padTo(event.replicaId === null ? 'service' : `replica ${event.replicaId}`, subjectWidth)}  ${oneLine(event.message)}`;
}
