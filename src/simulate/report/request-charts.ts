import { isLate, type RequestAnswer } from '../request-simulation.ts';
import type { ScalePoint, ScaleTrace } from '../scale-world.ts';
import { drawing, timeAxes, type Chart } from './chart.ts';
import { coordinate, polyline, stepPath } from './markup.ts';
import { inBuckets, mean, type Scale } from './scale.ts';

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
export function replicaCharts({ courses }: Pick<RequestAnswer, 'courses'>, trace: ScaleTrace): readonly Chart[] {
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
  const onDemand = inBuckets(points, buckets, (bucket) => bucket.reduce((high, point) => Math.max(high, point.onDemand), 0));
  const hasMarkets = points.some((point) => point.onDemand < point.launched);
  const late = inBuckets(points, buckets, (bucket) => bucket.filter((point) => isLate(point, capacityQps)).length);
  const { body, x, y } = timeAxes(seconds, most, 'replicas');
  const across = (values: readonly number[]): string =>
    stepPath(
      values.map((count, index) => [x(at(index)), y(count)] as const),
      x(seconds),
    );
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
      ...(hasMarkets ? [`<path class="line second" d="${across(onDemand)}" stroke-dasharray="4 4"/>`] : []),
      `<path class="line" d="${across(launched)}"/>`,
      ...(bad.length === 0 ? [] : [`<path class="bad" d="${bad.join('')}"/>`]),
    ].join(''),
  };
}

function areaPath(points: readonly (readonly [number, number])[], seconds: number, x: Scale): string {
  const line = stepPath(points, x(seconds));
  return `${line}V${drawing.bottom}H${drawing.left}Z`;
}

const hours = (seconds: number): string => (seconds / 3_600).toFixed(1);
