import { evenSpread, onDemandOnly, roundRobin, spotHedge } from './spot-baselines.ts';
import { hedge } from './spot-hedge.ts';
import type { SpotPolicyOf, SpotWorld } from './spot-fleet.ts';
import type { ReplicaPolicy } from '../domain/task.ts';

/** A way to place spot and on-demand replicas that can be compared. */
export interface SpotChoice {
  /** `own`: svc can run it. `baseline`: it stands for another tool. */
  readonly kind: 'own' | 'baseline';
  readonly summary: string;
  /** `spare`: replicas beyond the target, for policies that have a fixed number of them. */
  readonly policy: (seed: number, spare: number) => SpotPolicyOf;
}

/** Spot policies by the names that `--compare` takes. */
export const spotPolicies = {
  hedge: { kind: 'own', summary: 'spares and replicas on demand by the risk of each zone', policy: () => hedge },
  dynamic_fallback: {
    kind: 'own',
    summary: "SkyServe's SpotHedge: spare replicas, and on demand until spot is ready",
    policy: (seed, spare) => spotHedge(spare, 'paper', seed),
  },
  even_spread: { kind: 'baseline', summary: 'a fixed share in each zone, spot only', policy: evenSpreadFrom },
  round_robin: { kind: 'baseline', summary: 'each launch in the next zone, spot only', policy: (seed) => roundRobin(seed) },
  on_demand: { kind: 'baseline', summary: 'no spot replicas', policy: () => onDemandOnly },
} as const satisfies Readonly<Record<string, SpotChoice>>;

/** The zones in turn, from another one for each seed. */
function evenSpreadFrom(first: number): SpotPolicyOf {
  return (options, zones) => evenSpread(zones.map((_, index) => (index + first) % zones.length))(options, zones);
}

/** A placer with the replicas of the file that are always on demand, and its spare ones. Both as `wantedMarkets` has them. */
export function placerOfFile(
  placer: 'hedge' | 'dynamic_fallback',
  { baseOndemandFallbackReplicas: base, numOverprovision: spare }: Pick<ReplicaPolicy, 'baseOndemandFallbackReplicas' | 'numOverprovision'>,
): SpotChoice['policy'] {
  return (seed, defaultSpare) => (options, zones) => {
    // The hedge has spare replicas of its own; those of the file are beyond its target.
    const policy = spotPolicies[placer].policy(seed, placer === 'hedge' ? 0 : defaultSpare)(options, zones);
    const more = placer === 'hedge' ? spare : 0;
    return {
      ...policy,
      step: (world) => policy.step(base === 0 && more === 0 ? world : withoutBase(world, base, more)),
    };
  };
}

/** The world without the first `base` replicas on demand, and with `spare` more to place. */
function withoutBase(world: SpotWorld, base: number, spare: number): SpotWorld {
  const always = Math.min(base, world.target);
  return {
    now: world.now,
    target: world.target - always + spare,
    spot: world.spot,
    onDemand: world.onDemand.slice(always),
    inZone: (zone) => world.inZone(zone),
    launchSpot: (zone) => world.launchSpot(zone),
    endSpot: (replica) => world.endSpot(replica),
    setOnDemand: (count) => world.setOnDemand(count + always),
  };
}
