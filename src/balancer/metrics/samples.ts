import type { LabelName, MetricKey } from './metric-table.ts';
import { metricTable, type MetricFamily } from './metric-table.ts';

/** Label values, in the order of the family's label names. */
export type Labels = Partial<Readonly<Record<LabelName, string>>>;

/** One number of a family with its labels. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/** A histogram with its labels: counts per bucket, not added up, the infinite one last. */
export interface Distribution {
  readonly labels: Labels;
  readonly buckets: readonly number[];
  readonly sum: number;
}

/** The samples of one moment, by family. */
export class Samples {
  readonly #numbers = new Map<MetricKey, Sample[]>();
  readonly #distributions = new Map<MetricKey, Distribution[]>();

  add(key: MetricKey, value: number, labels: Labels = {}): void {
    append(this.#numbers, key, { labels, value });
  }

  /** A histogram; or a summary, whose one bucket is its count. */
  addDistribution(key: MetricKey, buckets: readonly number[], sum: number, labels: Labels = {}): void {
    append(this.#distributions, key, { labels, buckets, sum });
  }

  numbers(key: MetricKey): readonly Sample[] {
    return this.#numbers.get(key) ?? [];
  }

  distributions(key: MetricKey): readonly Distribution[] {
    return this.#distributions.get(key) ?? [];
  }

  /** In the order of the table; only families with samples. */
  families(): readonly (readonly [MetricKey, MetricFamily])[] {
    return metricKeys
      .filter((key) => this.numbers(key).length > 0 || this.distributions(key).length > 0)
      .map((key) => [key, metricTable[key]]);
  }
}

const isMetricKey = (name: string): name is MetricKey => Object.hasOwn(metricTable, name);
const metricKeys: readonly MetricKey[] = Object.keys(metricTable).filter(isMetricKey);

function append<Item>(map: Map<MetricKey, Item[]>, key: MetricKey, item: Item): void {
  const items = map.get(key);
  if (items === undefined) map.set(key, [item]);
  else items.push(item);
}
