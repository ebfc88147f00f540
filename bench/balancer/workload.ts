import type { Contestant } from './contestant.ts';
import type { Section } from './section.ts';

/** How and where a workload is run. */
export interface WorkloadOptions {
  /** A folder of its own. */
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
