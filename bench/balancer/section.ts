/** Figures of one measurement, by metric key. */
export type Sample = Readonly<Record<string, number>>;

/** A column of a section's table. */
export interface Metric {
  readonly key: string;
  /** Includes the unit. */
  readonly title: string;
  readonly digits: number;
  /** Whether the report compares the contestants by this metric, in pairs. */
  readonly isCompared?: boolean;
}

/** The measurements of one workload. */
export interface Section {
  readonly title: string;
  readonly metrics: readonly Metric[];
  /** One sample per round, by contestant. */
  readonly samples: ReadonlyMap<string, readonly Sample[]>;
  /** The contestants to compare with; HAProxy and nginx when absent. */
  readonly yardsticks?: readonly string[];
}
