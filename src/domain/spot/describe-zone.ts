import { lossesPerHour, type ZoneHistory } from './zone-history.ts';

/** What the hedge knows of a zone, as a clause. */
export function describeZone(history: ZoneHistory | undefined, now: number): string {
  const expected = `${lossesPerHour(history, now).toFixed(2)} losses/h expected`;
  if (history === undefined) return `no history; ${expected}`;
  const { isOpen, changedAt, losses, refusals } = history;
  const lost = losses < 0.05 ? 'none of its machines lost lately' : `machines lost lately: ${losses.toFixed(1)} (older ones count less)`;
  const refused = refusals === 0 ? '' : `, refused ${refusals} times in a row`;
  return `${isOpen ? 'open' : 'closed'} for ${describeAge(now - changedAt)}, ${lost}${refused}; ${expected}`;
}

function describeAge(ms: number): string {
  const minutes = Math.max(0, Math.round(ms / 60_000));
  if (minutes < 120) return `${minutes} min`;
  return minutes < 48 * 60 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1_440)} days`;
}
