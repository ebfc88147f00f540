const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** A text inside markup: nothing in it is a tag. */
export function escapeMarkup(text: string): string {
  return text.replaceAll(/[&<>"']/g, (letter) => entities[letter] ?? letter);
}

/** A coordinate with one decimal: more would not show, and the file would grow. */
export function coordinate(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** Parts of a path through points. `undefined` for no points. */
export function polyline(points: readonly (readonly [number, number])[]): string {
  return points.map(([x, y], index) => `${index === 0 ? 'M' : 'L'}${coordinate(x)} ${coordinate(y)}`).join('');
}

/** A path of steps: each value holds until the next point. Points that repeat a value are left out. */
export function stepPath(points: readonly (readonly [number, number])[], end: number): string {
  let path = '';
  let before: number | undefined;
  for (const [x, y] of points) {
    if (before === undefined) path += `M${coordinate(x)} ${coordinate(y)}`;
    else if (y !== before) path += `H${coordinate(x)}V${coordinate(y)}`;
    before = y;
  }
  return path === '' ? '' : `${path}H${coordinate(end)}`;
}
