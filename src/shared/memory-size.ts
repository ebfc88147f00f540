/** Steps of what people write, each in powers of ten and of two: a limit of `2 GB` comes as either. */
const units = [
  ['GB', 1e9, 2 ** 30],
  ['MB', 1e6, 2 ** 20],
  ['kB', 1e3, 2 ** 10],
] as const;

/** An amount of memory as it was most likely asked for: `2 GB` for 2000000000 bytes as for 2147483648. */
export function memorySize(bytes: number): string {
  for (const [unit, decimal, binary] of units) {
    if (bytes < decimal * 0.99) continue;
    // Kernels round to pages, so the amount is the one that is nearly a whole number of tenths.
    const offBy = (size: number): number => Math.abs((10 * bytes) / size - Math.round((10 * bytes) / size));
    const size = offBy(decimal) <= offBy(binary) ? decimal : binary;
    return `${Number((bytes / size).toFixed(1))} ${unit}`;
  }
  return `${bytes} bytes`;
}
