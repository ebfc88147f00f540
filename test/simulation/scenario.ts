import { anOffer, aServiceSpec, someResources } from '../support/builders.ts';
import type { ReplicaPolicy, Task, UpdatePolicy } from '../../src/domain/task.ts';
import type { Offer } from '../../src/providers/provider.ts';
import type { Random } from '../../src/shared/random.ts';

/** Draws one item of a list that is not empty. */
export function pick<Item>(random: Random, items: readonly Item[]): Item {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new Error('nothing to pick from');
  return item;
}

/** What a run simulates. All of it follows from the seed. */
export interface Scenario {
  readonly name: string;
  readonly update: UpdatePolicy;
  readonly policy: Partial<ReplicaPolicy> & Pick<ReplicaPolicy, 'minReplicas' | 'maxReplicas'>;
  readonly offers: readonly Offer[];
  readonly task: Partial<Task>;
  /** US dollars per hour for all replicas. */
  readonly limitUsd: number | undefined;
  /** The most replicas that may live at once when none is interrupted or silent, apart from those that stand in. */
  readonly mostReplicas: number;
  readonly mostOnDemand: number;
  /** On-demand replicas that may stand in for spot replicas: none, one for each that is not ready, or one for each. */
  readonly standIns: 'none' | 'until ready' | 'always';
}

const onDemand = anOffer({ provider: 'fake', region: 'r1', instanceType: 'small', cpus: 4, memoryGb: 16, hourlyUsd: 1 });

/** Spot machines in three zones of one region, and on-demand machines in the same zones. */
const zones: readonly Offer[] = ['a', 'b', 'c'].flatMap((zone) => [
  { ...onDemand, zone },
  { ...onDemand, zone, spot: true, hourlyUsd: 0.3 },
]);

/** The most spare spot replicas that the hedge buys for services of this size. */
const mostSpares = 2;

type Market = 'on demand' | 'use_spot' | 'dynamic_fallback' | 'hedge';
const placements: Readonly<Record<Market, Partial<ReplicaPolicy>>> = {
  'on demand': {},
  use_spot: {},
  dynamic_fallback: { dynamicOndemandFallback: true, spotPlacer: 'dynamic_fallback' },
  hedge: { dynamicOndemandFallback: true, spotPlacer: 'hedge' },
};
const markets: readonly Market[] = ['on demand', 'use_spot', 'dynamic_fallback', 'hedge'];

type Scaling = 'fixed' | 'request_rate' | 'concurrency' | 'forecast';
const scalings: Readonly<Record<Scaling, Partial<ReplicaPolicy>>> = {
  fixed: {},
  request_rate: { autoscaler: 'request_rate', targetQpsPerReplica: 1, upscaleDelaySeconds: 20, downscaleDelaySeconds: 40 },
  concurrency: { autoscaler: 'concurrency', targetOngoingRequestsPerReplica: 2, upscaleDelaySeconds: 0, downscaleDelaySeconds: 60 },
  forecast: { autoscaler: 'forecast', targetQpsPerReplica: 1, upscaleDelaySeconds: 0, downscaleDelaySeconds: 0 },
};

/** Draws a scenario: the mode of updates, the autoscaler, the market, and whether a price limit applies. */
export function drawScenario(random: Random): Scenario {
  const mode = pick(random, ['rolling', 'blue_green', 'canary'] as const);
  const scaling = pick(random, ['fixed', 'request_rate', 'concurrency', 'forecast'] as const);
  const market = pick(random, markets);
  const surge = pick(random, [0, 1, 2]);
  const minReplicas = pick(random, [1, 2, 3]);
  const maxReplicas = scaling === 'fixed' ? minReplicas : minReplicas + 2;
  // The smallest service can be updated within the limit; a larger one cannot always.
  const limitUsd = random() < 0.25 ? minReplicas + (mode === 'blue_green' ? minReplicas : 1) : undefined;
  const update: UpdatePolicy = { mode, surge, maxUnavailable: surge === 0 ? 1 : 0, steps: [25, 50], bakeSeconds: 20 };
  const policy = { minReplicas, maxReplicas, ...scalings[scaling], ...placements[market] };
  const spec = aServiceSpec({ update, maxHourlyCost: limitUsd });
  const most = mode === 'blue_green' ? 2 * maxReplicas : maxReplicas + Math.max(surge, 1);
  // Plain spot services use the hedge too.
  const isHedged = market === 'hedge' || market === 'use_spot';
  return {
    name: [`${minReplicas} to ${maxReplicas}`, mode, scaling, market, ...(limitUsd === undefined ? [] : [`at most $${limitUsd}`])].join(
      ', ',
    ),
    update,
    policy,
    offers: market === 'on demand' ? [onDemand] : zones,
    task: {
      resources: { order: 'any', choices: [someResources({ useSpot: market !== 'on demand' })] },
      service: { ...spec, replicaPolicy: { ...spec.replicaPolicy, ...policy } },
    },
    limitUsd,
    mostReplicas: most + (isHedged ? mostSpares : 0),
    mostOnDemand: most,
    // The hedge keeps more of them while spot runs in zones that changed lately.
    standIns: market === 'on demand' ? 'none' : isHedged ? 'always' : 'until ready',
  };
}
