import type { KubeObject } from './kube-api.ts';

/** Amounts in Kubernetes' notation, by resource: `{cpu: '500m', memory: '2Gi', 'nvidia.com/gpu': '1'}`. */
export type Quantities = Readonly<Record<string, string | number>>;

/** The fields of a pod that svc reads. */
export interface Pod extends KubeObject {
  readonly spec?: {
    readonly nodeName?: string;
    readonly containers?: readonly ContainerSpec[];
    readonly initContainers?: readonly ContainerSpec[];
    readonly overhead?: Quantities;
    readonly readinessGates?: readonly { readonly conditionType: string }[];
    /** From Kubernetes 1.34 on; takes precedence over containers' requests. */
    readonly resources?: { readonly requests?: Quantities };
  };
  readonly status?: PodStatus;
}

/** Whether all containers have ended: the pod uses no capacity. */
export function hasEnded({ status }: Pick<Pod, 'status'>): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

/** Whether every started container has ended, even if the pod's phase does not show it. */
export function runsNothing({ status }: Pick<Pod, 'status'>): boolean {
  const containers = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return containers.length > 0 && containers.every(({ state }) => state?.terminated !== undefined);
}

/** The fields of a container's description that svc reads. */
export interface ContainerSpec {
  readonly name?: string;
  readonly image?: string;
  /** `Always` for an init container that runs beside the others. */
  readonly restartPolicy?: string;
  readonly resources?: { readonly requests?: Quantities; readonly limits?: Quantities };
}

/** The fields of a pod's status that svc reads. */
export interface PodStatus {
  readonly phase?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly podIP?: string;
  readonly conditions?: readonly Condition[];
  readonly initContainerStatuses?: readonly ContainerStatus[];
  readonly containerStatuses?: readonly ContainerStatus[];
}

/** A condition of a pod or a node. */
export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

/** Status of a container. */
export interface ContainerStatus {
  readonly name: string;
  readonly ready?: boolean;
  readonly restartCount?: number;
  /** What the node has allocated now. From Kubernetes 1.33 on, a running container's amounts can change. */
  readonly resources?: { readonly requests?: Quantities };
  readonly allocatedResources?: Quantities;
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly running?: { readonly startedAt?: string };
    readonly terminated?: ContainerEnd;
  };
  readonly lastState?: { readonly terminated?: ContainerEnd };
}

/** How a container ended. */
export interface ContainerEnd {
  readonly exitCode?: number;
  readonly signal?: number;
  readonly finishedAt?: string;
  readonly reason?: string;
  readonly message?: string;
}
