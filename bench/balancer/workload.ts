import type { Contestant } from './contestant.ts';
import type { Section } from './section.ts';

/** The options of a workload run. */
export interface WorkloadOptions {
  /** The run's own folder. */
  readonly dir: string;
  readonly contestants: readonly Contestant[];
  readonly rounds: number;
  readonly seconds: number;
  readonly profileDir: string | undefined;
}

/** One kind of traffic. */
export interface Workload {
  readonly name: string;
  run(options: WorkloadOptions): Promise<Section>;
}
