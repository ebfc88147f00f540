const units = [
  { name: 'd', seconds: 86_400 },
  { name: 'h', seconds: 3_600 },
  { name: 'm', seconds: 60 },
  { name: 's', seconds: 1 },
] as const;

/** Formats a duration in s with each non-zero unit: `2d 1h 5s`, `10m 5s`, `0s`. Fractions are dropped. */
export function formatDuration(seconds: number): string {
  let rest = Math.max(0, Math.floor(seconds));
  const parts: string[] = [];
  for (const unit of units) {
    const count = Math.floor(rest / unit.seconds);
    rest -= count * unit.seconds;
    if (count > 0) parts.push(`${count}${unit.name}`);
  }
  return parts.length === 0 ? '0s' : parts.join(' ');
}

const ages = [
  { name: 'day', seconds: 86_400 },
  { name: 'hr', seconds: 3_600 },
  { name: 'min', seconds: 60 },
  { name: 'sec', seconds: 1 },
] as const;

/** Formats an age in its largest unit: `30 secs ago`, `1 hr ago`; `-` for null. `at` is an ISO string, `now` in ms. */
export function formatAge(at: string | null, now: number): string {
  if (at === null) return '-';
  const seconds = Math.floor((now - Date.parse(at)) / 1_000);
  for (const unit of ages) {
    const count = Math.floor(seconds / unit.seconds);
    if (count >= 1) return `${count} ${unit.name}${count === 1 ? '' : 's'} ago`;
  }
  return 'just now';
}

/** Formats a future ISO time: `in 4m 30s`, or `now`. */
export function formatUntil(at: string, now: number): string {
  const seconds = Math.ceil((Date.parse(at) - now) / 1_000);
  return seconds > 0 ? `in ${formatDuration(seconds)}` : 'now';
}

/** Formats US dollars per hour: `$1.20`, `$0.0125`; `-` when unknown, `$0` when free. */
export function formatPrice(hourlyUsd: number | null): string {
  if (hourlyUsd === null) return '-';
  if (hourlyUsd === 0) return '$0';
  return `$${hourlyUsd < 0.1 ? hourlyUsd.toPrecision(2) : hourlyUsd.toFixed(2)}`;
}

const two = (count: number): string => String(count).padStart(2, '0');

/** Formats ms in at most six columns (below a hundred hours): `8.1ms`, `812ms`, `12.3s`, `5m03s`, `2h05m`. */
export function formatLatency(ms: number): string {
  if (ms < 99.95) return `${ms.toFixed(1)}ms`;
  if (ms < 999.5) return `${ms.toFixed(0)}ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`;
}

/** Ascending numbers in short: `1-3,5`. */
export function ranges(numbers: readonly number[]): string {
  const parts: { from: number; to: number }[] = [];
  for (const number of numbers) {
    const last = parts.at(-1);
    if (last !== undefined && last.to === number - 1) last.to = number;
    else parts.push({ from: number, to: number });
  }
  return parts.map(({ from, to }) => (from === to ? String(from) : `${from}-${to}`)).join(',');
}
