import type { ControllerConfig } from '../../domain/config.ts';
import type { RoleRule } from '../../domain/kubernetes/kubernetes-role.ts';
import type { PortableFile } from '../../providers/provider.ts';

/** One rule of a Role, optionally restricted to objects with certain names. */
export interface AccessRule extends RoleRule {
  readonly resourceNames?: readonly string[];
}

/** The owner of all other objects: Kubernetes removes them with it. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** All data from which the objects of a controller in a Kubernetes cluster follow. Plain data. */
export interface HighAvailabilityDesign {
  /** Tag `svc-owner` of all that the controller launches. */
  readonly key: string;
  /**
   * The user's name of the context. The controller's pods use the same name, so that locations have the same names
   * everywhere.
   */
  readonly context: string;
  readonly namespace: string;
  readonly image: string;
  readonly imagePullSecrets: readonly string[];
  /** `sqlite`: one controller with a volume; `postgresql`: two controllers without a volume, of which one leads. */
  readonly database: 'sqlite' | 'postgresql';
  /** undefined: the default request, and no limit. */
  readonly cpus: number | undefined;
  readonly memoryGb: number | undefined;
  readonly diskGb: number;
  /** undefined: the Kubernetes cluster's default. */
  readonly storageClass: string | undefined;
  readonly balancers: number;
  readonly endpointService: ControllerConfig['endpointService'];
  /** Name or address at which clients reach endpoints. */
  readonly publicHost: string;
  /** US dollars per hour for all pods together. */
  readonly hourlyUsd: number;
  /** On every object, besides our own labels. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** The version of PodDisruptionBudget that the Kubernetes cluster has. */
  readonly policyVersion: 'policy/v1' | 'policy/v1beta1';
  /**
   * Permissions that replicas need in the namespace. `clusterReadRules`: permissions to read the free resources of the
   * whole Kubernetes cluster.
   */
  readonly replicaRules: readonly AccessRule[];
  readonly clusterReadRules: readonly AccessRule[];
}

/** Data that only Secrets may contain. */
export interface HighAvailabilitySecrets {
  /** Shared by the controller and its balancers. */
  readonly token: string;
  readonly files: readonly PortableFile[];
  /** Variables of the controller, such as the address of its database. */
  readonly environment: Readonly<Record<string, string>>;
}
