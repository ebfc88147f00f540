import type { ControllerConfig } from '../../domain/config.ts';
import type { RoleRule } from '../../domain/kubernetes-role.ts';
import type { PortableFile } from '../../providers/provider.ts';

/** One rule of a Role, which may be about objects of some names only. */
export interface AccessRule extends RoleRule {
  readonly resourceNames?: readonly string[];
}

/** The object whose removal takes all others with it. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** Everything that the objects of a controller in a cluster follow from. Plain data. */
export interface HighAvailabilityDesign {
  /** Tag `svc-owner` of all that it launches. */
  readonly key: string;
  /** What users call the cluster: the controller's pods call it so too, so that places are named alike everywhere. */
  readonly context: string;
  readonly namespace: string;
  readonly image: string;
  readonly imagePullSecrets: readonly string[];
  /** `sqlite`: one controller with a volume; `postgresql`: two without, of which one leads. */
  readonly database: 'sqlite' | 'postgresql';
  /** undefined: enough to begin with, and no limit. */
  readonly cpus: number | undefined;
  readonly memoryGb: number | undefined;
  readonly diskGb: number;
  /** undefined: the cluster's default. */
  readonly storageClass: string | undefined;
  readonly balancers: number;
  readonly endpointService: ControllerConfig['endpointService'];
  /** Name or address at which clients reach endpoints. */
  readonly publicHost: string;
  /** US dollars per hour for all pods together. */
  readonly hourlyUsd: number;
  /** On every object, beside our own. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** The version of PodDisruptionBudget that the cluster has. */
  readonly policyVersion: 'policy/v1' | 'policy/v1beta1';
  /** What replicas need in the namespace, and what is read of the whole cluster to know what there is room for. */
  readonly replicaRules: readonly AccessRule[];
  readonly clusterReadRules: readonly AccessRule[];
}

/** What only Secrets may hold. */
export interface HighAvailabilitySecrets {
  /** Shared by the controller and its balancers. */
  readonly token: string;
  readonly files: readonly PortableFile[];
  /** Variables of the controller, such as the address of its database. */
  readonly environment: Readonly<Record<string, string>>;
}
