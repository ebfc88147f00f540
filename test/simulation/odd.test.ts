import { expect, test } from 'vitest';
import { seedBatches, simulateBatch } from './run.ts';

const batches = seedBatches(1);

test.for(batches)('the invariants hold under random faults, updates and loads (odd seeds $from to $to)', async (batch) => {
  await expect(simulateBatch(batch)).resolves.toBeUndefined();
});
