import { parseArgs } from 'node:util';

/** The options of a benchmark run. */
export interface BenchOptions {
  /** Names in run order; empty means all. */
  readonly workloads: readonly string[];
  readonly rounds: number;
  /** Duration of one measurement of one contestant. */
  readonly seconds: number;
  /** Names of contestants; empty means those of the workload. */
  readonly only: readonly string[];
  readonly profileDir: string | undefined;
  /** Whether to write RESULTS.md. */
  readonly isWriting: boolean;
}

const names = (text: string | undefined): readonly string[] => (text === undefined ? [] : text.split(',').map((name) => name.trim()));

function positive(text: string, name: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new Error(`--${name} takes a whole number above zero, not ${text}`);
}

/** Parses the command line; throws an error that names the invalid argument. */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      workloads: { type: 'string' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
      only: { type: 'string' },
      'cpu-prof': { type: 'string' },
      write: { type: 'boolean', default: false },
    },
  });
  // A partial RESULTS.md would look complete.
  if (values.write && (values.workloads ?? values.only ?? values['cpu-prof']) !== undefined) {
    throw new Error('--write goes with all workloads and contestants, and without --cpu-prof');
  }
  return {
    workloads: names(values.workloads),
    rounds: positive(values.rounds, 'rounds'),
    seconds: positive(values.seconds, 'seconds'),
    only: names(values.only),
    profileDir: values['cpu-prof'],
    isWriting: values.write,
  };
}
