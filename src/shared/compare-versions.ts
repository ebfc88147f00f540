/**
 * Whether version `a` (such as `0.9.1`) is older than version `b`. Text after the third number, as in `1.0.0-rc.1`, is
 * ignored.
 */
export function isOlderVersion(a: string, b: string): boolean {
  const [left, right] = [numbersOf(a), numbersOf(b)];
  const at = left.findIndex((number, index) => number !== right[index]);
  return at >= 0 && (left[at] ?? 0) < (right[at] ?? 0);
}

/** The three numbers of a version; a missing one is 0. */
function numbersOf(version: string): readonly number[] {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.+-]/).map((part) => Number.parseInt(part, 10) || 0);
  return [major, minor, patch];
}
