import { seededRandom, type Random } from '../../src/shared/random.ts';
import { report } from './figures.ts';

/** The seed of this test file and of the programs that it starts. `SVC_TEST_SEED=N` repeats a run's random numbers. */
function readSeed(): number {
  const given = process.env['SVC_TEST_SEED'];
  if (given !== undefined) return Number(given);
  const seed = Date.now() % 2 ** 31;
  process.env['SVC_TEST_SEED'] = String(seed);
  report(`SVC_TEST_SEED=${seed}`);
  return seed;
}

/** Random numbers for tests, their load and their faulty replicas. The report of the tests shows the seed. */
export const testRandom: Random = seededRandom(readSeed());
