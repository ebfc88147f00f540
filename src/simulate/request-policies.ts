import { defaultDelays, type ReplicaPolicy } from '../domain/task.ts';
import { fixedScaler, knativeScaler, kubernetesScaler, skyServeScaler } from './scale-baselines.ts';
import { policyScaler } from './scale-production.ts';
import { simulatedRequestSeconds, usualUtilisation, type ScalerKind } from './scale-world.ts';

/** An autoscaler that can be compared. */
export interface RequestPolicy {
  /** `own`: svc can run it. `baseline`: it stands for another tool. */
  readonly kind: 'own' | 'baseline';
  readonly summary: string;
  /** `policy`: of the service file. */
  readonly scaler: (policy: ReplicaPolicy, setting: Setting) => ScalerKind;
}

/** What policies are compared with. */
interface Setting {
  /** What a replica serves at most. */
  readonly capacityQps: number;
  readonly startedAt: number | undefined;
}

/** Autoscalers by the names that `--compare` takes. */
export const requestPolicies = {
  request_rate: {
    kind: 'own',
    summary: 'the request rate of the last minute',
    scaler: (policy, setting) => own('request_rate', policy, setting),
  },
  concurrency: {
    kind: 'own',
    summary: 'requests that are queued or in flight',
    scaler: (policy, setting) => own('concurrency', policy, setting),
  },
  forecast: {
    kind: 'own',
    summary: 'rate, trend over the cold start, backlog and noise',
    scaler: (policy, setting) => own('forecast', policy, setting),
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
  kubernetes: {
    kind: 'baseline',
    summary: "Kubernetes' autoscaler (HPA) on the request rate",
    scaler: (policy) => bounded(kubernetesScaler, policy),
  },
  fixed_peak: {
    kind: 'baseline',
    summary: 'a fixed number of replicas, enough for the busiest minute',
    scaler: (policy) => bounded(fixedScaler(1), policy),
  },
} as const satisfies Readonly<Record<string, RequestPolicy>>;

type Autoscaler = NonNullable<ReplicaPolicy['autoscaler']>;

/** The autoscaler of a file; undefined for a fixed number of replicas. */
export function autoscalerOf({ autoscaler, targetQpsPerReplica }: ReplicaPolicy): Autoscaler | undefined {
  return autoscaler ?? (targetQpsPerReplica === undefined ? undefined : 'request_rate');
}

/** The policy of the file itself. */
export function fileScaler(policy: ReplicaPolicy): RequestPolicy {
  const name = autoscalerOf(policy);
  return {
    kind: 'own',
    summary: `the policy of the file: ${name ?? 'a fixed number of replicas'}`,
    scaler: (_, setting) => (name === undefined ? policyScaler('fixed', policy, setting.startedAt) : own(name, policy, setting)),
  };
}

/** With targets for the simulated replica: one that the file lacks, and one in requests of the world's duration. */
function own(autoscaler: Autoscaler, policy: ReplicaPolicy, { capacityQps, startedAt }: Setting): ScalerKind {
  const usualQps = usualUtilisation * capacityQps;
  const { targetQpsPerReplica: target = usualQps } = policy;
  const complete = {
    ...policy,
    ...(autoscaler !== autoscalerOf(policy) && delaysOf(autoscaler)),
    autoscaler,
    targetQpsPerReplica: typeof target === 'number' ? target : weakestTarget(target),
    targetOngoingRequestsPerReplica: usualQps * simulatedRequestSeconds,
  };
  return policyScaler(autoscaler, complete, startedAt);
}

/** The delays of a file are for its own autoscaler. */
function delaysOf(autoscaler: Autoscaler): Pick<ReplicaPolicy, 'upscaleDelaySeconds' | 'downscaleDelaySeconds'> {
  const { up, down } = defaultDelays[autoscaler];
  return { upscaleDelaySeconds: up, downscaleDelaySeconds: down };
}

/** The world has replicas of one kind: of several, the one that serves the fewest requests. */
export function weakestTarget(targets: Readonly<Record<string, number>>): number {
  return Math.min(...Object.values(targets));
}

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
