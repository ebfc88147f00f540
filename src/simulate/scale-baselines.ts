import { decideTarget, initialAutoscaler, rateWindowMs } from '../domain/autoscale.ts';
import type { ReplicaPolicy } from '../domain/task.ts';
import { simulatedRequestSeconds, ongoingRequests, type Scaler, type ScalerKind, runningSums, usualUtilisation } from './scale-world.ts';

/** A number of replicas that never changes: for a share of all minutes, it has the usual utilisation or less. */
export function fixedScaler(share: number): ScalerKind {
  return {
    name: `Fixed, for ${share * 100} % of the time`,
    start({ arrivals, capacityQps }) {
      const sums = runningSums(arrivals);
      const rates = Array.from(sums.subarray(60), (sum, index) => (sum - (sums[index] ?? 0)) / 60).toSorted((a, b) => a - b);
      const at = share * (rates.length - 1);
      const [below = 0, above = below] = [rates[Math.floor(at)], rates[Math.ceil(at)]];
      const rate = below + (above - below) * (at % 1);
      const replicas = Math.max(1, Math.ceil(rate / (usualUtilisation * capacityQps)));
      return { everySeconds: 1, decide: () => replicas };
    },
  };
}

/** SkyServe's request-rate autoscaler, by the function that decides in production. */
export function skyServeScaler(upscaleDelaySeconds = 300, downscaleDelaySeconds = 1_200): ScalerKind {
  return {
    name: `SkyServe (${upscaleDelaySeconds} s up, ${downscaleDelaySeconds} s down)`,
    start({ capacityQps }, replicas) {
      const policy: ReplicaPolicy = {
        ...unbounded,
        targetQpsPerReplica: usualUtilisation * capacityQps,
        upscaleDelaySeconds,
        downscaleDelaySeconds,
      };
      let memory = { ...initialAutoscaler(policy), target: replicas };
      return {
        everySeconds: 20,
        decide({ second, arrived }) {
          const requestsInWindow = arrived(second - rateWindowMs / 1_000, second);
          memory = decideTarget(memory, policy, { requestsInWindow, busy: 0, fleet: { living: [], toCome: 1 } });
          return memory.target;
        },
      };
    },
  };
}

const unbounded: ReplicaPolicy = {
  minReplicas: 1,
  maxReplicas: Number.MAX_SAFE_INTEGER,
  numOverprovision: 0,
  targetQpsPerReplica: undefined,
  upscaleDelaySeconds: 300,
  downscaleDelaySeconds: 1_200,
  dynamicOndemandFallback: false,
  baseOndemandFallbackReplicas: 0,
  spotPlacer: undefined,
};

/** Knative's pod autoscaler: means over 60 s, and over 6 s in panic, which begins at twice what is ready. */
export const knativeScaler: ScalerKind = {
  name: 'Knative KPA',
  start(trace): Scaler {
    const [stableSeconds, panicSeconds, everySeconds] = [60, 6, 2];
    const perReplica = usualUtilisation * trace.capacityQps * simulatedRequestSeconds;
    let seen: readonly { readonly second: number; readonly value: number }[] = [];
    let panic = { until: -1, most: 0 };
    return {
      everySeconds,
      decide(facts) {
        const { second, ready, desired } = facts;
        seen = [...seen, { second, value: ongoingRequests(facts, trace, everySeconds) }].filter(
          (one) => one.second > second - stableSeconds,
        );
        const replicasFor = (seconds: number): number => {
          const values = seen.filter((one) => one.second > second - seconds);
          return Math.ceil(values.reduce((sum, { value }) => sum + value, 0) / values.length / perReplica);
        };
        const [stable, urgent] = [replicasFor(stableSeconds), replicasFor(panicSeconds)];
        if (urgent >= 2 * Math.max(1, ready)) panic = { ...panic, until: second + stableSeconds };
        panic = { ...panic, most: second < panic.until ? Math.max(panic.most, urgent, desired) : 0 };
        return Math.max(1, panic.most, stable);
      },
    };
  },
};

/** Kubernetes' horizontal pod autoscaler on the request rate, with its five minutes of stabilisation downwards. */
export const kubernetesScaler: ScalerKind = {
  name: 'Kubernetes HPA',
  start({ capacityQps }, replicas): Scaler {
    let target = replicas;
    let seen: readonly { readonly second: number; readonly desired: number }[] = [];
    return {
      everySeconds: 15,
      decide({ second, ready, arrived }) {
        const rate = arrived(second - 30, second) / 30;
        const perReplica = usualUtilisation * capacityQps;
        const isClose = Math.abs(rate / (Math.max(1, ready) * perReplica) - 1) < 0.1;
        const desired = Math.min(isClose ? target : Math.ceil(rate / perReplica), Math.max(2 * target, target + 4));
        seen = [...seen, { second, desired }].filter((one) => one.second >= second - 300);
        target = Math.max(1, desired > target ? desired : Math.max(...seen.map((one) => one.desired)));
        return target;
      },
    };
  },
};
