import { isLate, type RequestAnswer, type RequestScore } from '../request-simulation.ts';
import type { ScalePoint, ScaleTrace } from '../scale-world.ts';
import { drawing, timeAxes, valueAxis, type Chart } from './chart.ts';
import { coordinate, escapeMarkup, polyline, stepPath } from './markup.ts';
import { inBuckets, linear, mean, niceTicks, squareRoot, type Scale } from './scale.ts';

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
    count === 0 ? [] : [`M${coordinate(x(at(index)))} ${drawing.bottom - 3}H${coordinate(Math.max(x(at(index)) + 1.5, x(at(index + 1) || seconds)))}`],
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
  const costTicks = niceTicks(Math.max(...scores.map(({ cost }) => cost)) * 1.02, 6);
  const mostLate = Math.max(0.01, ...scores.map(({ late }) => late));
  const lateTicks = [0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1].filter((share, index, all) => share <= mostLate || (all[index - 1] ?? 0) < mostLate);
  const x = linear(costTicks.at(-1) ?? 1, drawing.left, drawing.right);
  const y = squareRoot(lateTicks.at(-1) ?? 1, drawing.bottom, drawing.top);
  const placed: { x: number; y: number }[] = [];
  const dots = scores.map((score, index) => {
    const at = { x: x(score.cost), y: y(score.late) };
    const label = freePlace(at, placed);
    placed.push(label);
    const title = `${score.policy}: cost ${score.cost.toFixed(3)}, late ${percent(score.late)}`;
    return (
      `<g><title>${escapeMarkup(title)}</title>${dot(score.kind, at)}` +
      `<text class="label" x="${coordinate(label.x)}" y="${coordinate(label.y)}">${index + 1}</text></g>`
    );
  });
  const costs = costTicks.map((cost) => `<text class="mid" x="${coordinate(x(cost))}" y="${drawing.bottom + 18}">${cost}</text>`);
  return {
    title: 'Cost and late requests',
    description: `Each policy as a dot: to the right is dearer, up is later. ${scores.map(({ policy, cost, late }) => `${policy}: ${cost.toFixed(2)}, ${percent(late)}`).join('; ')}.`,
    body: [valueAxis(lateTicks.map((share) => share * 100), (value) => y(value / 100), '% late'), ...costs, ...dots].join(''),
    caption:
      'To the right: cost relative to the bound. Up: share of late requests, on a square-root scale. The numbers are rows of the table. ' +
      '<span class="own">● svc</span> <span class="baseline">■ other tools</span> <span class="bound">◆ bound</span>',
  };
}

/** Shapes differ as well as colours. */
function dot(kind: RequestScore['kind'], { x, y }: { readonly x: number; readonly y: number }): string {
  const [left, top] = [coordinate(x), coordinate(y)];
  if (kind === 'own') return `<circle class="dot-own" cx="${left}" cy="${top}" r="5"/>`;
  if (kind === 'baseline') return `<rect class="dot-baseline" x="${coordinate(x - 4.5)}" y="${coordinate(y - 4.5)}" width="9" height="9"/>`;
  return `<path class="dot-bound" d="M${left} ${coordinate(y - 6)}l6 6l-6 6l-6 -6z"/>`;
}

/** Beside the dot, and above labels that are there already. */
function freePlace({ x, y }: { readonly x: number; readonly y: number }, placed: readonly { readonly x: number; readonly y: number }[]) {
  const label = { x: x + 8, y: y - 4 };
  while (placed.some((other) => Math.abs(other.x - label.x) < 16 && Math.abs(other.y - label.y) < 13)) label.y -= 13;
  return label;
}

function areaPath(points: readonly (readonly [number, number])[], seconds: number, x: Scale): string {
  const line = stepPath(points, x(seconds));
  return `${line}V${drawing.bottom}H${drawing.left}Z`;
}

const hours = (seconds: number): string => (seconds / 3_600).toFixed(1);

const percent = (share: number): string => `${(share * 100).toFixed(2)} %`;
