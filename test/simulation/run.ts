import { withWorld, type World } from '../support/service-world.ts';
import { acts, endAll } from './faults.ts';
import { Invariants, restOf, whyNotConverged } from './invariants.ts';
import { Requests } from './requests.ts';
import { drawScenario, pick, type Scenario } from './scenario.ts';
import { seededRandom } from '../../src/shared/random.ts';

const rounds = 8;

/** Time for convergence after the last fault, virtual ms: backoffs of refusals, of failed programs, and a staged update. */
const boundMs = 3_600_000;

const stepMs = 1_000;

/** Time without a change at the end of a run, virtual ms: longer than two sweeps and each delay of the autoscalers. */
const restMs = 130_000;
const restStepMs = 5_000;

/** The command that repeats one run. */
const replayOf = (seed: number): string =>
  `SVC_SIMULATION_SEEDS=${seed}-${seed} npm run test:simulation -- test/simulation/${seed % 2 === 0 ? 'even' : 'odd'}.test.ts`;

async function step(world: World, invariants: Invariants, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    await world.clock.advance(stepMs);
    await invariants.check();
  }
}

/** The service must converge, and then change nothing for a while. Counts that follow load and spot zones may settle. */
async function converge(world: World, invariants: Invariants, { policy }: Scenario): Promise<void> {
  let rest: string | undefined;
  let restsFor = 0;
  let reason: string | undefined;
  for (let passed = 0; passed < boundMs; passed += restStepMs) {
    reason = await whyNotConverged(world, policy.minReplicas);
    const before = rest;
    rest = reason === undefined ? await restOf(world) : undefined;
    restsFor = rest === undefined || rest !== before ? 0 : restsFor + restStepMs;
    if (restsFor >= restMs) return;
    await world.clock.advance(restStepMs);
    await invariants.check();
  }
  throw new Error(`no convergence: ${reason ?? `it never rests for ${restMs / 1_000} s: ${rest}`}.`);
}

/** Runs the control loop of one service through random acts and faults. The error names the seed, the acts and the replay. */
async function simulate(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const scenario = drawScenario(random);
  const done: string[] = [];
  await withWorld(
    async (world) => {
      Object.assign(world.cloud.conduct, { callMs: 40, bootMs: 1_000, jobOf: () => ({ setupMs: 300, readyAfterMs: 500 }) });
      const requests = new Requests(world);
      const invariants = new Invariants(world, scenario, requests);
      try {
        for (let round = 0; round < rounds; round += 1) {
          const name = pick(random, Object.keys(acts));
          done.push(name);
          await acts[name]?.(world, random, requests);
          await step(world, invariants, Math.floor(random() * 15_000));
        }
        done.push('every fault ends');
        await endAll(world, requests);
        await converge(world, invariants, scenario);
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        throw new Error(`Seed ${seed} (${scenario.name}): ${message}\nActs: ${done.join('; ')}.\nRepeat: ${replayOf(seed)}`, {
          cause: error,
        });
      }
    },
    scenario.policy,
    seed,
    scenario.offers,
    scenario.task,
    'in memory',
  );
}

/** Without a choice, the seeds from 1 to this one run: a few seconds of `npm cit`. */
const usualSeeds = 40;

/** Each test runs a batch of seeds: reports of thousands of runs stay readable. */
const batches = 10;

/** The even seeds (`rest` 0) or the odd ones (1) of a run, such as `SVC_SIMULATION_SEEDS=1-2000`, in batches. */
export function seedBatches(rest: 0 | 1): readonly Batch[] {
  const [from = 1, to = usualSeeds] = (process.env['SVC_SIMULATION_SEEDS'] ?? `1-${usualSeeds}`).split('-').map(Number);
  const seeds = Array.from({ length: to - from + 1 }, (_, index) => from + index).filter((seed) => seed % 2 === rest);
  const size = Math.max(1, Math.ceil(seeds.length / batches));
  return Array.from({ length: Math.ceil(seeds.length / size) }, (_, index) => {
    const some = seeds.slice(index * size, (index + 1) * size);
    return { from: some[0] ?? 0, to: some.at(-1) ?? 0 };
  });
}

/** Every second seed of a range; both ends are included. */
interface Batch {
  readonly from: number;
  readonly to: number;
}

/** Simulates the seeds of a batch. Throws the error of the first that fails, and says how many did. */
export async function simulateBatch({ from, to }: Batch): Promise<void> {
  const failures: Error[] = [];
  for (let seed = from; seed <= to; seed += 2) {
    try {
      await simulate(seed);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      failures.push(error);
    }
  }
  const [first] = failures;
  if (first !== undefined) throw new Error(`${failures.length} runs failed, the first one so. ${first.message}`, { cause: first });
}
