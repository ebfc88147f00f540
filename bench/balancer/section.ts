/** Figures of one measurement, by the key of their metric. */
export type Sample = Readonly<Record<string, number>>;

/** A column of a section's table. */
export interface Metric {
  readonly key: string;
  /** With its unit. */
  readonly title: string;
  readonly digits: number;
  /** Whether the contestants are compared by it, in pairs. */
  readonly isCompared?: boolean;
}

/** What was measured of one workload. */
export interface Section {
  readonly title: string;
  readonly metrics: readonly Metric[];
  /** One sample for each round, by contestant. */
  readonly samples: ReadonlyMap<string, readonly Sample[]>;
  /** Contestants that the others are compared with; HAProxy and nginx when absent. */
  readonly yardsticks?: readonly string[];
}
