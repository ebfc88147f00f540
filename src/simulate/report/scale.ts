/** Maps a value of an axis to a position in the drawing. */
export type Scale = (value: number) => number;

/** Equal steps. `from` and `to` are positions in the drawing. */
export function linear(largest: number, from: number, to: number): Scale {
  return (value) => from + (value / Math.max(largest, Number.MIN_VALUE)) * (to - from);
}

/** Steps that shrink with the value, so that shares near zero stay apart when one is near one. */
export function squareRoot(largest: number, from: number, to: number): Scale {
  const whole = linear(Math.sqrt(largest), from, to);
  return (value) => whole(Math.sqrt(Math.max(0, value)));
}

/** Equal factors, for values above 0. */
export function logarithmic(smallest: number, largest: number, from: number, to: number): Scale {
  const whole = linear(Math.log(largest / smallest), from, to);
  return (value) => whole(Math.log(value / smallest));
}

/** About `count` round values from 0 up to at least `largest`; the last one is the end of the axis. */
export function niceTicks(largest: number, count: number): readonly number[] {
  if (!(largest > 0)) return [0, 1];
  const rough = largest / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough - 1e-12) ?? 10);
  return Array.from({ length: Math.ceil(largest / step - 1e-9) + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}

/** Round times for an axis of so many seconds, with their labels. */
export function timeTicks(seconds: number): readonly { readonly at: number; readonly label: string }[] {
  const steps = [60, 300, 600, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400, 172_800, 432_000, 864_000, 1_728_000];
  const step = steps.find((one) => seconds / one <= 9) ?? 8_640_000;
  return Array.from({ length: Math.floor(seconds / step) + 1 }, (_, index) => ({ at: index * step, label: timeLabel(index * step, step) }));
}

function timeLabel(seconds: number, step: number): string {
  if (seconds === 0) return '0';
  if (step >= 86_400) return `${seconds / 86_400} d`;
  return step >= 3_600 ? `${seconds / 3_600} h` : `${seconds / 60} min`;
}

/** Numbers in buckets of equal length, at most `count` of them. */
export function inBuckets<Value>(
  values: readonly Value[],
  count: number,
  summarise: (bucket: readonly Value[]) => number,
): readonly number[] {
  const length = Math.max(1, Math.ceil(values.length / count));
  return Array.from({ length: Math.ceil(values.length / length) }, (_, index) =>
    summarise(values.slice(index * length, (index + 1) * length)),
  );
}

/** The mean of a bucket. */
export const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
