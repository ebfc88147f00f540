/** Returns the value that `share` (0 to 1) of the ascending values do not exceed; NaN without values. */
export function quantile(ascending: ArrayLike<number>, share: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * share))] ?? Number.NaN;
}

/** `p50 1.2, p99 3.4, max 5.6` of ascending values. */
export function spread(ascending: readonly number[]): string {
  const figures = { p50: 0.5, p99: 0.99, max: 1 };
  return Object.entries(figures)
    .map(([name, share]) => `${name} ${quantile(ascending, share).toFixed(2)}`)
    .join(', ');
}

/** Prints a line in the report of the test. */
export function report(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Prints measurements for readers. Times depend on the machine, so tests do not assert them. */
export function printFigures(what: string, figures: Readonly<Record<string, string | number>>): void {
  const parts = Object.entries(figures).map(([name, value]) => `${name}: ${typeof value === 'number' ? round(value) : value}`);
  report(`[figures] ${what}: ${parts.join('; ')}`);
}

const round = (value: number): string => (Number.isInteger(value) ? String(value) : value.toFixed(2));
