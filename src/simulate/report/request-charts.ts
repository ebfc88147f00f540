import { isLate, type RequestAnswer, type RequestScore } from '../request-simulation.ts';
import type { ScalePoint, ScaleTrace } from '../scale-world.ts';
import { drawing, timeAxes, valueAxis, type Chart } from './chart.ts';
import { coordinate, escapeMarkup, polyline, stepPath } from './markup.ts';
import { inBuckets, logarithmic, mean, squareRoot, type Scale } from './scale.ts';

/** Values across a drawing: more than its pixels would not show. */
const buckets = 400;

/** The requests of a trace over time. */
export function requestChart({ arrivals }: ScaleTrace): Chart {
  const length = Math.ceil(arrivals.length / buckets);
  const means = inBuckets(arrivals, buckets, mean);
  const peaks = inBuckets(arrivals, buckets, (bucket) => bucket.reduce((most, count) => Math.max(most, count), 0));
  const { body, x, y } = timeAxes(arrivals.length, Math.max(...peaks), 'requests/s');
  const across = (values: readonly number[]) => values.map((value, index) => [x(index * length), y(value)] as const);
  return {
    title: 'Requests',
    description: `Requests per second over ${hours(arrivals.length)} hours: the mean of each step as a line, the busiest second as an area.`,
    body: `${body}<path class="area" d="${areaPath(across(peaks), arrivals.length, x)}"/><path class="line" d="${polyline(across(means))}"/>`,
    caption: `Line: mean of ${length === 1 ? 'each second' : `${length} s`}. Area: the busiest second of each step.`,
  };
}

/** One chart for each policy: its replicas over the ones that the requests keep busy. */
export function replicaCharts({ courses }: RequestAnswer, trace: ScaleTrace): readonly Chart[] {
  const most = courses.reduce((top, { points }) => points.reduce((high, { launched }) => Math.max(high, launched), top), 1);
  return courses.map(({ policy, points }) => replicaChart(policy, points, trace, most));
}

function replicaChart(policy: string, points: readonly ScalePoint[], { arrivals, capacityQps }: ScaleTrace, most: number): Chart {
  const length = Math.ceil(points.length / buckets);
  const seconds = arrivals.length;
  const at = (index: number): number => points[index * length]?.second ?? 0;
  const busyPerSecond = Math.ceil(arrivals.length / buckets);
  const busy = inBuckets(arrivals, buckets, mean).map((rate) => rate / capacityQps);
  const launched = inBuckets(points, buckets, (bucket) => bucket.reduce((high, point) => Math.max(high, point.launched), 0));
  const late = inBuckets(points, buckets, (bucket) => bucket.filter((point) => isLate(point, capacityQps)).length);
  const { body, x, y } = timeAxes(seconds, most, 'replicas');
  const bad = late.flatMap((count, index) =>
    count === 0
      ? []
      : [`M${coordinate(x(at(index)))} ${drawing.bottom - 3}H${coordinate(Math.max(x(at(index)) + 1.5, x(at(index + 1) || seconds)))}`],
  );
  return {
    title: policy,
    description: `Replicas of the policy ${policy} over time, up to ${Math.max(...launched)}. Requests are late in ${bad.length} of ${late.length} steps.`,
    body: [
      body,
      `<path class="area" d="${areaPath(
        busy.map((count, index) => [x(index * busyPerSecond), y(Math.min(count, most))] as const),
        seconds,
        x,
      )}"/>`,
      `<path class="line" d="${stepPath(
        launched.map((count, index) => [x(at(index)), y(count)] as const),
        x(seconds),
      )}"/>`,
      ...(bad.length === 0 ? [] : [`<path class="bad" d="${bad.join('')}"/>`]),
    ].join(''),
  };
}

/** Cost against late requests. The numbers are those of the rows of the table. */
export function costChart(scores: readonly RequestScore[]): Chart {
  const costs = scores.map(({ cost }) => cost);
  const [least, most] = [Math.min(...costs) / 1.05, Math.max(...costs) * 1.05];
  const x = logarithmic(least, most, drawing.left, drawing.right - 24);
  const costTicks = apart(
    costMarks.filter((cost) => cost >= least && cost <= most),
    x,
    leastCostDistance,
  );
  const mostLate = Math.max(0.01, ...scores.map(({ late }) => late));
  const shares = lateShares.filter((_, index) => (lateShares[index - 1] ?? 0) < mostLate);
  const y = squareRoot(shares.at(-1) ?? 1, drawing.bottom, drawing.top + 14);
  const lateTicks = apart(shares, y, leastLateDistance);
  const dots = scores.map((score) => {
    const title = `${score.policy}: cost ${score.cost.toFixed(3)}, late ${percent(score.late)}`;
    return `<g><title>${escapeMarkup(title)}</title>${dot(score.kind, { x: x(score.cost), y: y(score.late) })}</g>`;
  });
  const labels = labelsOf(scores.map(({ cost, late }) => ({ x: x(cost), y: y(late) })));
  const ticks = costTicks.map(
    (cost) =>
      `<path class="grid" d="M${coordinate(x(cost))} ${drawing.bottom}v4"/><text class="mid" x="${coordinate(x(cost))}" y="${drawing.bottom + 18}">${cost}</text>`,
  );
  return {
    title: 'Cost and late requests',
    description: `Each policy as a dot: to the right is dearer, up is later. ${scores.map(({ policy, cost, late }) => `${policy}: ${cost.toFixed(2)}, ${percent(late)}`).join('; ')}.`,
    body: [
      valueAxis(
        lateTicks.map((share) => share * 100),
        (value) => y(value / 100),
        '% late',
      ),
      ...ticks,
      ...dots,
      ...labels.map(({ text, ...at }) => `<text class="label" x="${coordinate(at.x + 8)}" y="${coordinate(at.y - 5)}">${text}</text>`),
    ].join(''),
    caption:
      'To the right: cost relative to the bound, on a logarithmic scale. Up: share of late requests, on a square-root scale. The numbers are rows of the table. ' +
      '<span class="own">● svc</span> <span class="baseline">■ other tools</span> <span class="bound">◆ bound</span>',
  };
}

/** Distances in the drawing below which labels would touch. */
const leastLateDistance = 17;
const leastCostDistance = 34;

/** The marks that are far enough from the ones before them. 1 is kept before all others: the cost of the bound. */
function apart(marks: readonly number[], scale: Scale, distance: number): readonly number[] {
  const kept: number[] = [];
  for (const mark of marks.toSorted((a, b) => Number(b === 1) - Number(a === 1) || a - b))
    if (kept.every((other) => Math.abs(scale(other) - scale(mark)) > distance)) kept.push(mark);
  return kept;
}

/** Values on the axis of costs. */
const costMarks = [0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 8, 10, 15, 20, 50, 100];

/** Values on the axis of late requests. */
const lateShares = [0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1];

interface Label {
  readonly x: number;
  readonly y: number;
  /** The numbers of the dots there. */
  readonly text: string;
}

/** One label for dots that are too close for two. */
function labelsOf(dots: readonly { readonly x: number; readonly y: number }[]): readonly Label[] {
  const labels: Label[] = [];
  for (const [index, { x, y }] of dots.entries()) {
    const near = labels.findIndex((label) => Math.abs(label.x - x) < 20 && Math.abs(label.y - y) < 14);
    const there = labels[near];
    if (there === undefined) labels.push({ x, y, text: String(index + 1) });
    else labels[near] = { ...there, text: `${there.text}, ${index + 1}` };
  }
  return labels;
}

/** Shapes differ as well as colours. */
function dot(kind: RequestScore['kind'], { x, y }: { readonly x: number; readonly y: number }): string {
  const [left, top] = [coordinate(x), coordinate(y)];
  if (kind === 'own') return `<circle class="dot-own" cx="${left}" cy="${top}" r="5"/>`;
  if (kind === 'baseline') return `<rect class="dot-baseline" x="${coordinate(x - 4.5)}" y="${coordinate(y - 4.5)}" width="9" height="9"/>`;
  return `<path class="dot-bound" d="M${left} ${coordinate(y - 6)}l6 6l-6 6l-6 -6z"/>`;
}

function areaPath(points: readonly (readonly [number, number])[], seconds: number, x: Scale): string {
  const line = stepPath(points, x(seconds));
  return `${line}V${drawing.bottom}H${drawing.left}Z`;
}

const hours = (seconds: number): string => (seconds / 3_600).toFixed(1);

const percent = (share: number): string => `${(share * 100).toFixed(2)} %`;
