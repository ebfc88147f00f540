import type { SpotAnswer, SpotPoint } from '../spot-simulation.ts';
import type { SpotTrace } from '../spot-fleet.ts';
import { drawing, timeAxes, timeAxis, type Chart } from './chart.ts';
import { coordinate, escapeMarkup, stepPath } from './markup.ts';
import { inBuckets, linear } from './scale.ts';

/** Values across a drawing. */
const buckets = 300;

/** Height of a zone's row. */
const rowHeight = 22;

/** Width of the names of zones. */
const labelWidth = 130;

/** Letters that fit there. */
const maxName = 18;

/** The room of each zone over time: darker is more, empty is none. */
export function zoneChart({ zones, capacity, gapSeconds }: SpotTrace): Chart {
  const steps = capacity[0]?.length ?? 0;
  const seconds = steps * gapSeconds;
  const length = Math.ceil(steps / buckets) * gapSeconds;
  const x = linear(seconds, labelWidth, drawing.right);
  const most = capacity.reduce((top, room) => Math.max(top, largest(room)), 1);
  const rows = zones.map((zone, row) => {
    const rooms = inBuckets(capacity[row] ?? [], buckets, (bucket) => bucket.reduce((least, room) => Math.min(least, room)));
    const top = drawing.top + row * rowHeight;
    const blocks = runsOf(rooms)
      .filter(({ value }) => value > 0)
      .map(({ from, to, value }) => {
        const [left, right] = [x(from * length), x(Math.min(seconds, to * length))];
        const opacity = coordinate(0.3 + (0.7 * value) / most);
        return `<rect class="room" x="${coordinate(left)}" y="${top}" width="${coordinate(right - left)}" height="${rowHeight - 5}" opacity="${opacity}"/>`;
      });
    return `<text class="end" x="${labelWidth - 8}" y="${top + 13}">${escapeMarkup(shortName(zone, zones))}</text><path class="grid" d="M${labelWidth} ${top + rowHeight - 5}H${drawing.right}"/>${blocks.join('')}`;
  });
  const bottom = drawing.top + zones.length * rowHeight;
  return {
    title: 'Spot capacity of each zone',
    description: zones.map((zone, row) => `${zone} has room ${sharePercent(capacity[row] ?? [])} of the time`).join('; '),
    body: rows.join('') + timeAxis(seconds, x, bottom),
    caption: `Filled: the zone has room; darker for more, up to ${most} replicas. Empty: it has none.`,
    height: bottom + 28,
  };
}

/** One chart for each policy: ready replicas, those on demand, and the target. */
export function spotCharts({ courses }: SpotAnswer, target: number): readonly Chart[] {
  const most = courses.reduce(
    (top, { points }) => points.reduce((high, { ready, onDemand }) => Math.max(high, ready, onDemand), top),
    target,
  );
  return courses.map(({ policy, points }) => spotChart(policy, points, target, most));
}

function spotChart(policy: string, points: readonly SpotPoint[], target: number, most: number): Chart {
  const length = Math.ceil(points.length / buckets);
  const seconds = points.at(-1)?.second ?? 1;
  const { body, x, y } = timeAxes(seconds, most, 'replicas');
  const path = (value: (bucket: readonly SpotPoint[]) => number): string => {
    const values = inBuckets(points, buckets, value);
    return stepPath(
      values.map((count, index) => [x(points[index * length]?.second ?? 0), y(count)] as const),
      x(seconds),
    );
  };
  const ready = path((bucket) => bucket.reduce((least, point) => Math.min(least, point.ready), Number.POSITIVE_INFINITY));
  const onDemand = path((bucket) => bucket.reduce((high, point) => Math.max(high, point.onDemand), 0));
  const short = inBuckets(points, buckets, (bucket) => bucket.filter((point) => point.ready < target).length);
  const bad = short.flatMap((count, index) => {
    const left = x(points[index * length]?.second ?? 0);
    return count === 0 ? [] : [`M${coordinate(left)} ${drawing.bottom - 3}H${coordinate(left + 1.5)}`];
  });
  return {
    title: policy,
    description: `Replicas of the policy ${policy} over time. Fewer than ${target} are ready in ${bad.length} of ${short.length} steps.`,
    body: [
      body,
      `<path class="area" d="${onDemand}V${drawing.bottom}H${drawing.left}Z"/>`,
      `<path class="line second" d="M${drawing.left} ${coordinate(y(target))}H${drawing.right}" stroke-dasharray="4 4"/>`,
      `<path class="line" d="${ready}"/>`,
      ...(bad.length === 0 ? [] : [`<path class="bad" d="${bad.join('')}"/>`]),
    ].join(''),
  };
}

interface ValueRun {
  readonly from: number;
  readonly to: number;
  readonly value: number;
}

/** Neighbours with the same value as one. */
function runsOf(values: readonly number[]): readonly ValueRun[] {
  const runs: ValueRun[] = [];
  for (const [index, value] of values.entries()) {
    const last = runs.at(-1);
    if (last?.value === value) runs[runs.length - 1] = { ...last, to: index + 1 };
    else runs.push({ from: index, to: index + 1, value });
  }
  return runs;
}

const largest = (values: readonly number[]): number => values.reduce((most, value) => Math.max(most, value), 0);

const sharePercent = (rooms: readonly number[]): string =>
  `${Math.round((rooms.filter((room) => room > 0).length / Math.max(1, rooms.length)) * 100)} %`;

/** `us-east-1f` of `us-east-1f_v100_1`, unless another zone would have the same name. */
function shortName(zone: string, zones: readonly string[]): string {
  const [name = zone] = zone.split('_', 1);
  return (zones.filter((other) => other.startsWith(`${name}_`)).length > 1 ? zone : name).slice(0, maxName);
}
