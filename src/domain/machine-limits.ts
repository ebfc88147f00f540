import type { Amount, Resources } from './task.ts';

/** Upper limits of a machine that shares its computer with others. Undefined: no limit. */
export interface MachineLimits {
  /** Virtual CPUs; fractions count. */
  readonly cpus?: number | undefined;
  readonly memoryGb?: number | undefined;
}

const exact = (amount: Amount | undefined): number | undefined => (amount?.atLeast === false ? amount.value : undefined);

/** An exact amount is a limit too: a rented machine of that size has no more. With `+` it is only a lower bound. */
export function machineLimits({ cpus, memory }: Pick<Resources, 'cpus' | 'memory'>): MachineLimits {
  return { cpus: exact(cpus), memoryGb: exact(memory) };
}
