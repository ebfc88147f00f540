import type { ReplicaPolicy } from '../domain/task.ts';
import { fixedScaler, knativeScaler, kubernetesScaler, skyServeScaler } from './scale-baselines.ts';
import { policyScaler } from './scale-production.ts';
import type { ScalerKind } from './scale-world.ts';

/** An autoscaler that can be compared. */
export interface RequestPolicy {
  /** `own`: svc can run it. `baseline`: it stands for another tool. */
  readonly kind: 'own' | 'baseline';
  readonly summary: string;
  /** `policy`: of the service file, with a target. */
  readonly scaler: (policy: ReplicaPolicy) => ScalerKind;
}

/** Autoscalers by the names that `--compare` takes. */
export const requestPolicies = {
  request_rate: {
    kind: 'own',
    summary: "the request rate of the last minute, with the file's delays",
    scaler: (policy) => policyScaler('request_rate', { ...policy, autoscaler: 'request_rate' }),
  },
  concurrency: {
    kind: 'own',
    summary: 'requests that are queued or in flight',
    scaler: (policy) => policyScaler('concurrency', { ...policy, autoscaler: 'concurrency' }),
  },
  forecast: {
    kind: 'own',
    summary: 'rate, trend over the cold start, backlog and noise',
    scaler: (policy) => policyScaler('forecast', { ...policy, autoscaler: 'forecast' }),
  },
  skyserve: {
    kind: 'baseline',
    summary: "SkyServe's defaults: 300 s up, 1200 s down",
    scaler: (policy) => bounded(skyServeScaler(300, 1_200), policy),
  },
  skyserve_quick: {
    kind: 'baseline',
    summary: "SkyServe's rule with 20 s up, 300 s down",
    scaler: (policy) => bounded(skyServeScaler(20, 300), policy),
  },
  knative: { kind: 'baseline', summary: "Knative's autoscaler (KPA)", scaler: (policy) => bounded(knativeScaler, policy) },
  kubernetes: { kind: 'baseline', summary: "Kubernetes' autoscaler (HPA) on the request rate", scaler: (policy) => bounded(kubernetesScaler, policy) },
  fixed_peak: {
    kind: 'baseline',
    summary: 'a fixed number of replicas, enough for the busiest minute',
    scaler: (policy) => bounded(fixedScaler(1), policy),
  },
} as const satisfies Readonly<Record<string, RequestPolicy>>;

/** A baseline within the bounds of the file, so that all policies have the same choice. */
function bounded(kind: ScalerKind, { minReplicas, maxReplicas }: ReplicaPolicy): ScalerKind {
  return {
    name: kind.name,
    start(trace, replicas) {
      const scaler = kind.start(trace, replicas);
      return { everySeconds: scaler.everySeconds, decide: (facts) => Math.min(maxReplicas, Math.max(minReplicas, scaler.decide(facts))) };
    },
  };
}
