/** The time of a log line, ms since the epoch: ISO 8601, or ms as earlier versions wrote it. Undefined for others. */
export function readLogTime(value: unknown): number | undefined {
  const ms = typeof value === 'string' ? Date.parse(value) : value;
  return typeof ms === 'number' && Number.isFinite(ms) ? ms : undefined;
}
