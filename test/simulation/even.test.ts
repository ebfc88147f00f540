import { expect, test } from 'vitest';
import { seedBatches, simulateBatch } from './run.ts';

const batches = seedBatches(0);

test.for(batches)('the invariants hold under random faults, updates and loads (even seeds $from to $to)', async (batch) => {
  await expect(simulateBatch(batch)).resolves.toBeUndefined();
});
