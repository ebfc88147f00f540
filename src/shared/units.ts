const sizeUnits: ReadonlyMap<string, number> = new Map([
  ['b', 1],
  ['kb', 2 ** 10],
  ['mb', 2 ** 20],
  ['gb', 2 ** 30],
  ['tb', 2 ** 40],
  ['pb', 2 ** 50],
]);

/** Bytes of one GB, for memory and disks. */
export const bytesPerGb = 2 ** 30;

/** Parses `16GB`, `1.5 tb` or `512` (in `bareUnit`) as bytes; KB = 1024. Undefined for other text, such as `1GiB`. */
export function parseSize(text: string, bareUnit: 'B' | 'GB'): number | undefined {
  const match = /^(\d{1,15}(?:\.\d{1,9})?) ?([kmgtp]?b)?$/i.exec(text.trim());
  const factor = sizeUnits.get((match?.[2] ?? bareUnit).toLowerCase());
  if (match === null || factor === undefined) return undefined;
  return Number(match[1]) * factor;
}

const durationUnits: ReadonlyMap<string, number> = new Map([
  ['s', 1],
  ['m', 60],
  ['h', 3_600],
  ['d', 86_400],
  ['w', 604_800],
]);

/** Parses `90s`, `10m` or `1h30m` as seconds. A bare number counts in `bareUnit`. Undefined for invalid text. */
export function parseDuration(text: string, bareUnit: 's' | 'm'): number | undefined {
  const trimmed = text.trim().toLowerCase();
  if (/^\d{1,12}(\.\d{1,9})?$/.test(trimmed)) return Number(trimmed) * (durationUnits.get(bareUnit) ?? 1);
  if (!/^(\d{1,12}(\.\d{1,9})?[smhdw])+$/.test(trimmed)) return undefined;
  let seconds = 0;
  for (const [, amount, unit] of trimmed.matchAll(/([\d.]+)([smhdw])/g)) seconds += Number(amount) * (durationUnits.get(unit ?? '') ?? 0);
  return seconds;
}

/** An amount of memory for a table: whole GB, below 10 GB with one decimal, so that half a GB does not show as 0. */
export function shortGb(gb: number): string {
  return String(gb < 10 ? Math.round(gb * 10) / 10 : Math.round(gb));
}

/** Units in powers of ten and of two: a limit written as `2 GB` may mean either. */
const memoryUnits = [
  ['GB', 1e9, 2 ** 30],
  ['MB', 1e6, 2 ** 20],
  ['kB', 1e3, 2 ** 10],
] as const;

/** An amount of memory as the user most likely wrote it: `2 GB` for 2000000000 bytes and for 2147483648. */
export function memorySize(bytes: number): string {
  for (const [unit, decimal, binary] of memoryUnits) {
    if (bytes < decimal * 0.99) continue;
    // Kernels round to pages. So the unit fits whose amount is closest to a whole number of tenths.
    const offBy = (size: number): number => Math.abs((10 * bytes) / size - Math.round((10 * bytes) / size));
    const size = offBy(decimal) <= offBy(binary) ? decimal : binary;
    return `${Number((bytes / size).toFixed(1))} ${unit}`;
  }
  return `${bytes} bytes`;
}
