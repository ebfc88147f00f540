import { expect, test } from 'vitest';
import { simulate, simulationSeeds } from './run.ts';

const seeds = simulationSeeds(0);

test.for(seeds)('the invariants hold under random faults, updates and loads (seed %d)', async (seed) => {
  await expect(simulate(seed)).resolves.toBeUndefined();
});
