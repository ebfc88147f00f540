// Control characters, format marks and line separators: on a terminal they could move the cursor, hide text or reorder
// it.
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Makes text from a file or the network safe to print: invisible characters become `·`, a tab becomes a space. */
export function printable(text: string): string {
  return text.replaceAll('\t', ' ').replaceAll(invisible, '·');
}

/** The text in single quotes, printable and truncated to `limit` characters. */
export function quote(text: string, limit = 60): string {
  const shown = text.length > limit ? `${text.slice(0, limit)}…` : text;
  return `'${printable(shown)}'`;
}

/**
 * Turns a message of another program into a sentence. For example, a Kubernetes API server answers without a full stop.
 */
export function asSentence(text: string): string {
  const said = text.trim();
  return /[.!?]$/.test(said) ? said : `${said}.`;
}

/** Units in powers of ten and of two: a limit written as `2 GB` may mean either. */
const units = [
  ['GB', 1e9, 2 ** 30],
  ['MB', 1e6, 2 ** 20],
  ['kB', 1e3, 2 ** 10],
] as const;

/** An amount of memory as the user most likely wrote it: `2 GB` for 2000000000 bytes and for 2147483648. */
export function memorySize(bytes: number): string {
  for (const [unit, decimal, binary] of units) {
    if (bytes < decimal * 0.99) continue;
    // Kernels round to pages. So the unit fits whose amount is closest to a whole number of tenths.
    const offBy = (size: number): number => Math.abs((10 * bytes) / size - Math.round((10 * bytes) / size));
    const size = offBy(decimal) <= offBy(binary) ? decimal : binary;
    return `${Number((bytes / size).toFixed(1))} ${unit}`;
  }
  return `${bytes} bytes`;
}
