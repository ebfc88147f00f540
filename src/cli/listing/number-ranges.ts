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
