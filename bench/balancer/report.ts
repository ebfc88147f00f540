import type { Metric, Sample, Section } from './section.ts';
import { median, pairedRatios } from './statistics.ts';

const usualYardsticks = ['haproxy', 'nginx'];

/** A section as Markdown: medians over the rounds, and paired ratios with their spread. */
export function sectionMarkdown(section: Section): string {
  const rivals = (section.yardsticks ?? usualYardsticks).filter((name) => section.samples.has(name));
  const compared = section.metrics.filter((metric) => metric.isCompared === true);
  const comparisons = compared.flatMap((metric) => rivals.map((rival) => ({ metric, rival })));
  const title = ({ metric, rival }: { metric: Metric; rival: string }): string =>
    compared.length > 1 ? `${metric.title} : ${rival}` : `: ${rival}`;
  const head = ['', ...section.metrics.map((metric) => metric.title), ...comparisons.map(title)];
  const rows = [...section.samples].map(([name, samples]) => [
    name,
    ...section.metrics.map((metric) => figure(median(values(samples, metric)), metric.digits)),
    ...comparisons.map(({ metric, rival }) => ratio(name, values(samples, metric), rival, values(section.samples.get(rival), metric))),
  ]);
  return `## ${section.title}\n\n${table(head, rows)}`;
}

function values(samples: readonly Sample[] | undefined, { key }: Metric): readonly number[] {
  return (samples ?? []).map((sample) => sample[key] ?? Number.NaN);
}

const figure = (value: number, digits: number): string => (Number.isNaN(value) ? '' : value.toFixed(digits));

function ratio(name: string, own: readonly number[], rival: string, others: readonly number[]): string {
  if (name === rival) return '1';
  const { median: middle, min, max } = pairedRatios(own, others);
  if (Number.isNaN(middle)) return '';
  if (own.length === 1) return middle.toFixed(2);
  return `${middle.toFixed(2)} (${min.toFixed(2)}..${max.toFixed(2)})`;
}

const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [line(head), `|${head.map((_, column) => (column === 0 ? '---' : '---:')).join('|')}|`, ...rows.map(line)].join('\n');
}
