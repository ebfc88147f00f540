import { coordinate, escapeMarkup } from './markup.ts';
import { linear, niceTicks, timeTicks, type Scale } from './scale.ts';

/** Size of every drawing, in its own units. The page scales it to its column. */
export const drawing = { width: 520, height: 226, left: 46, right: 496, top: 24, bottom: 196 } as const;

/** One drawing with its title. */
export interface Chart {
  readonly title: string;
  /** What it shows, for who does not see it. */
  readonly description: string;
  /** Elements inside the drawing. */
  readonly body: string;
  /** One sentence or list below the drawing, as markup. */
  readonly caption?: string;
  readonly height?: number;
}

/** A chart as a figure. `id` is unique in the page. */
export function renderChart({ title, description, body, caption, height = drawing.height }: Chart, id: string): string {
  return [
    '<figure>',
    `<h3>${escapeMarkup(title)}</h3>`,
    `<div class="wide"><svg viewBox="0 0 ${drawing.width} ${height}" role="img" aria-labelledby="${id}-t ${id}-d">`,
    `<title id="${id}-t">${escapeMarkup(title)}</title><desc id="${id}-d">${escapeMarkup(description)}</desc>`,
    body,
    '</svg></div>',
    ...(caption === undefined ? [] : [`<figcaption>${caption}</figcaption>`]),
    '</figure>',
  ].join('\n');
}

/** The axes of a chart over time: their elements, and the scales for the data. */
export function timeAxes(seconds: number, largest: number, unit: string): { readonly body: string; readonly x: Scale; readonly y: Scale } {
  const ticks = niceTicks(largest, 4);
  const x = linear(seconds, drawing.left, drawing.right);
  const y = linear(ticks.at(-1) ?? 1, drawing.bottom, drawing.top);
  return { body: valueAxis(ticks, y, unit) + timeAxis(seconds, x), x, y };
}

/** The labels of a time axis below the drawing. */
export function timeAxis(seconds: number, x: Scale, bottom: number = drawing.bottom): string {
  const labels = timeTicks(seconds).map(
    ({ at, label }, index) =>
      `<path class="grid" d="M${coordinate(x(at))} ${bottom}v4"/><text class="mid${index % 2 === 1 ? ' odd' : ''}" x="${coordinate(x(at))}" y="${bottom + 18}">${label}</text>`,
  );
  return labels.join('');
}

/** Lines across the drawing with their values. */
export function valueAxis(ticks: readonly number[], y: Scale, unit: string): string {
  const lines = ticks.map(
    (value) =>
      `<path class="grid" d="M${drawing.left} ${coordinate(y(value))}H${drawing.right}"/>` +
      `<text class="end" x="${drawing.left - 6}" y="${coordinate(y(value) + 4)}">${shortNumber(value)}</text>`,
  );
  return `${lines.join('')}<text x="4" y="13">${escapeMarkup(unit)}</text>`;
}

/** At most four characters for usual values: `12k`, `1.5`. */
function shortNumber(value: number): string {
  if (value >= 1_000_000) return `${value / 1_000_000}M`;
  return value >= 1_000 ? `${value / 1_000}k` : String(value);
}
