import type { MetricFamily } from './metric-table.ts';
import type { Distribution, Labels, Sample, Samples } from './samples.ts';

/** The two exposition formats. */
export type ExpositionFormat = 'text' | 'openmetrics';

/** From https://prometheus.io/docs/instrumenting/exposition_formats/ and the OpenMetrics specification. */
export const contentTypes = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
} as const satisfies Readonly<Record<ExpositionFormat, string>>;

/** The format that an `Accept` field prefers: OpenMetrics only when it is named and ranks no lower than text. */
export function formatFor(accept: string | undefined): ExpositionFormat {
  const preferences = (accept ?? '').split(',').map(readPreference);
  const open = preferences.find(({ type }) => type === 'application/openmetrics-text')?.weight ?? 0;
  const text = preferences.find(({ type }) => type === 'text/plain')?.weight ?? 0;
  return open > 0 && open >= text ? 'openmetrics' : 'text';
}

function readPreference(part: string): { readonly type: string; readonly weight: number } {
  const [type = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
  const weight = Number(parameters.find((text) => text.startsWith('q='))?.slice(2) ?? 1);
  return { type, weight: Number.isNaN(weight) ? 0 : weight };
}

/** The whole text of a scrape. Pure. */
export function renderMetrics(samples: Samples, format: ExpositionFormat): string {
  const lines: string[] = [];
  for (const [key, family] of samples.families()) {
    const { name, type, help } = family;
    // A counter's samples end in `_total` in both formats; only the older one has that in the family's name too.
    const announced = type === 'counter' && format === 'text' ? `${name}_total` : name;
    lines.push(`# HELP ${announced} ${escapeHelp(help, format)}`, `# TYPE ${announced} ${type}`);
    const sampleName = type === 'counter' ? `${name}_total` : name;
    for (const sample of samples.numbers(key)) lines.push(numberLine(sampleName, sample));
    for (const distribution of samples.distributions(key)) lines.push(...distributionLines(family, distribution));
  }
  if (format === 'openmetrics') lines.push('# EOF');
  return `${lines.join('\n')}\n`;
}

function numberLine(name: string, { labels, value }: Sample): string {
  return `${name}${labelText(labels)} ${formatValue(value)}`;
}

function distributionLines({ name, bounds }: MetricFamily, { labels, buckets, sum }: Distribution): readonly string[] {
  let count = 0;
  const lines: string[] = [];
  for (const [index, inBucket] of buckets.entries()) {
    count += inBucket;
    if (bounds === undefined) continue;
    const bound = bounds[index];
    lines.push(`${name}_bucket${labelText(labels, bound === undefined ? '+Inf' : formatBound(bound))} ${count}`);
  }
  return [...lines, `${name}_sum${labelText(labels)} ${formatValue(sum)}`, `${name}_count${labelText(labels)} ${count}`];
}

function labelText(labels: Labels, le?: string): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  if (le !== undefined) pairs.push(`le="${le}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

/** Whole bounds get a decimal point too, as OpenMetrics requires: both formats then give the same series. */
const formatBound = (bound: number): string => (Number.isInteger(bound) ? `${bound}.0` : String(bound));

/** Removes the rounding noise of adding fractions. */
const formatValue = (value: number): string => (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(12))));

const escapeLabel = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');

function escapeHelp(text: string, format: ExpositionFormat): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
  return format === 'openmetrics' ? escaped.replaceAll('"', '\\"') : escaped;
}
