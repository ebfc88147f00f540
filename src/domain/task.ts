import type { LoadBalancerSpec } from './load-balancer.ts';
import type { TlsRules } from './tls-rules.ts';

/** A task or service file after parsing: normalised, with defaults and variables. Times are in s; all other code uses ms. */
export interface Task {
  readonly name: string | undefined;
  /** Absolute path on the machine where `svc` was run, or a git source. */
  readonly workdir: Workdir | undefined;
  readonly numNodes: number;
  /** Alternatives, at least one. `ordered`: in order of preference; `any`: the cheapest of all. */
  readonly resources: ResourceAlternatives;
  readonly fileMounts: readonly FileMount[];
  /** Values of `envs`, all strings, all given. */
  readonly envs: Readonly<Record<string, string>>;
  /** Values of `secrets`: never printed, logged or put into process arguments. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly setup: string | undefined;
  readonly run: string | undefined;
  readonly service: ServiceSpec | undefined;
  /** Volumes that exist at the provider, by the folder where they are mounted. */
  readonly volumes: Readonly<Record<string, string>>;
  readonly providerConfig: ProviderConfig;
  /** The version whose copy of the working files is equal and used too; absent: this version's own. Set at an update. */
  readonly filesVersion?: number;
  /** Valid fields that other modules handle (`volumes`, `config`, `pool`, …), by their names in the file. */
  readonly otherFields: readonly string[];
}

/** The task's `config` for providers. It overrides the configuration file. */
export interface ProviderConfig {
  readonly kubernetes?: KubernetesOverrides;
}

interface KubernetesOverrides {
  readonly podConfig?: Readonly<Record<string, unknown>>;
  readonly provisionTimeoutSeconds?: number;
}

/** Source of the working directory. */
export type Workdir =
  | { readonly kind: 'path'; readonly path: string }
  | { readonly kind: 'git'; readonly url: string; readonly ref: string | undefined };

/** A file, folder or bucket that must exist at `target` on the machine. */
export interface FileMount {
  readonly target: string;
  readonly source:
    | { readonly kind: 'path'; readonly path: string }
    | { readonly kind: 'bucket'; readonly uri: string; readonly mode: 'MOUNT' | 'COPY' | 'MOUNT_CACHED' };
}

/** The alternatives from which a machine may be chosen. */
export interface ResourceAlternatives {
  readonly order: 'any' | 'ordered';
  readonly choices: readonly Resources[];
}

/** An amount: exact, or a minimum. */
export interface Amount {
  readonly value: number;
  readonly atLeast: boolean;
}

/** Accelerators of one kind on one machine. `name` is as the user wrote it; comparison ignores case. */
export interface Accelerator {
  readonly name: string;
  readonly count: number;
}

/** One alternative of `resources`. Absent means "anything". */
export interface Resources {
  /** The parts of `cloud[/region[/zone]]`; `*` and absence are undefined. */
  readonly cloud: string | undefined;
  readonly region: string | undefined;
  readonly zone: string | undefined;
  readonly cpus: Amount | undefined;
  /** GB */
  readonly memory: Amount | undefined;
  readonly accelerator: Accelerator | undefined;
  /** From `accelerators: 80GB+` and the like: any accelerator with that much memory (GB). */
  readonly acceleratorMemory: (Amount & { readonly count: number; readonly manufacturer: string | undefined }) | undefined;
  readonly instanceType: string | undefined;
  readonly useSpot: boolean;
  readonly diskSizeGb: number;
  readonly diskTier: 'low' | 'medium' | 'high' | 'ultra' | 'best' | undefined;
  readonly networkTier: 'standard' | 'best' | undefined;
  /** All ports, ranges expanded, ascending, without duplicates. */
  readonly ports: readonly number[];
  readonly imageId: string | Readonly<Record<string, string>> | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /** US dollars per hour and machine. */
  readonly maxHourlyCost: number | undefined;
  /** Valid but rarely used fields that were set (`local_disk`, `autostop`, `priority`, …), by name. */
  readonly otherFields: readonly string[];
}

/** The `tls:` section. */
export interface TlsSpec extends Partial<TlsRules> {
  readonly keyfile: string;
  readonly certfile: string;
  /** Certificates of the authorities that issue those of clients. Clients then need one. */
  readonly clientCa?: string;
}

/** The `service:` section. */
export interface ServiceSpec {
  readonly readinessProbe: ReadinessProbe;
  readonly replicaPolicy: ReplicaPolicy;
  readonly loadBalancingPolicy: LoadBalancingPolicy;
  readonly replicaPort: number;
  readonly tls: TlsSpec | undefined;
  readonly protocol: ReplicaProtocol;
  /** How long a draining replica may take for its requests under way, s. */
  readonly gracefulTerminationSeconds: number;
  /** Whether the endpoint listens on all addresses rather than on loopback. */
  readonly expose: boolean;
  readonly loadBalancer: LoadBalancerSpec;
  readonly update: UpdatePolicy;
  /** Most that all replicas may cost, US dollars per hour. Stored versions may lack it. */
  readonly maxHourlyCost?: number | undefined;
}

/**
 * The closed list of update modes. `rolling`: replica by replica; all ready ones serve. `blue_green`: all requests move at
 * once, when every new replica is ready. `canary`: requests move in steps, while the versions are compared.
 */
export const updateModes = ['rolling', 'blue_green', 'canary'] as const;
export type UpdateMode = (typeof updateModes)[number];

/** How an update replaces replicas. `surge` and `maxUnavailable` are not both 0. */
export interface UpdatePolicy {
  readonly mode: UpdateMode;
  /** Replicas beyond the desired number during an update: a number, or a share of the desired number. */
  readonly surge: number | { readonly percent: number };
  /** How many fewer replicas than desired may be ready because of an update. */
  readonly maxUnavailable: number;
  /** Shares of the requests that the new version of a canary gets one after the other, percent, ascending, 1 to 99. */
  readonly steps: readonly number[];
  /** How long each step of a canary lasts, and how long the old replicas of `blue_green` stay after the switch, s. */
  readonly bakeSeconds: number;
  /** The cookie or header whose value names a session. During a canary, a session keeps its version. */
  readonly session?: SessionKey | undefined;
}

/** Where a request names its session. The case of a header's name does not matter. */
export type SessionKey = { readonly cookie: string } | { readonly header: string };

/** The update policy of a file that sets none. */
export const defaultUpdate = {
  mode: 'rolling',
  surge: 1,
  maxUnavailable: 0,
  steps: [5, 25, 50],
  bakeSeconds: 300,
} as const satisfies UpdatePolicy;

/** The closed list of names for `load_balancing_policy`. */
export const loadBalancingPolicies = ['round_robin', 'least_load', 'instance_aware_least_load'] as const;
export type LoadBalancingPolicy = (typeof loadBalancingPolicies)[number];

/** The closed list of values of `protocol`: the protocol of the service's program. */
export const replicaProtocols = ['auto', 'http', 'h2c'] as const;
export type ReplicaProtocol = (typeof replicaProtocols)[number];

/** When a replica counts as ready. */
export interface ReadinessProbe {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. When given, the probe is a POST. */
  readonly postData: string | undefined;
  readonly initialDelaySeconds: number;
  readonly timeoutSeconds: number;
  readonly intervalSeconds: number;
  /** How long probes of a replica that was ready may fail before the replica is replaced, s. */
  readonly failureThresholdSeconds: number;
}

/** The closed list of values of `autoscaler`. */
export const autoscalers = ['request_rate', 'concurrency', 'forecast'] as const;

/**
 * Delays of a file that sets none, s. SkyServe's are for a rate. What is ongoing already has the mean of a minute; the
 * forecast has its own hold.
 */
export const defaultDelays = {
  request_rate: { up: 300, down: 1_200 },
  concurrency: { up: 0, down: 300 },
  forecast: { up: 0, down: 0 },
} as const;

/** Desired number of replicas. A fixed number has `min === max` and no target. Stored versions lack optional fields. */
export interface ReplicaPolicy {
  readonly autoscaler?: (typeof autoscalers)[number] | undefined;
  readonly minReplicas: number;
  readonly maxReplicas: number;
  readonly numOverprovision: number;
  readonly targetQpsPerReplica: number | Readonly<Record<string, number>> | undefined;
  readonly targetOngoingRequestsPerReplica?: number | undefined;
  /** How long a request may wait for its first byte before the forecast counts it as late, s. */
  readonly targetTtfbSeconds?: number | undefined;
  /** Absent: `terminate`. */
  readonly scaleToZero?: (typeof zeroActions)[number] | undefined;
  /** Path of the metrics of the replicas' engines, which `concurrency` and `forecast` read. */
  readonly metricsPath?: string | undefined;
  readonly upscaleDelaySeconds: number;
  readonly downscaleDelaySeconds: number;
  readonly dynamicOndemandFallback: boolean;
  readonly baseOndemandFallbackReplicas: number;
  readonly spotPlacer: SpotPlacer | undefined;
  readonly schedule?: readonly ScheduleEntry[] | undefined;
  /** Absent: `cheapest`. */
  readonly wake?: (typeof wakes)[number] | undefined;
  /** Whether a failing replica is replaced before it ends. Absent: it is. */
  readonly earlyReplacement?: boolean | undefined;
}

/** The closed list of values of `scale_to_zero`: what happens to the last replica when the service needs none. */
export const zeroActions = ['terminate', 'sleep'] as const;

/** The closed list of values of `wake`: what decides the location while requests wait and no replica is ready. */
export const wakes = ['cheapest', 'fastest'] as const;

/** Bounds that hold from each moment of a cron expression until the next moment of any entry. */
export interface ScheduleEntry {
  readonly cron: string;
  readonly timezone: string;
  readonly minReplicas: number;
  readonly maxReplicas: number;
}

/** The closed list of values of `spot_placer`: how zones for spot machines are chosen. */
export const spotPlacers = ['dynamic_fallback', 'hedge'] as const;
export type SpotPlacer = (typeof spotPlacers)[number];
