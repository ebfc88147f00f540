import type { KubeObject } from './kube-api.ts';

/** Amounts as Kubernetes writes them, by resource: `{cpu: '500m', memory: '2Gi', 'nvidia.com/gpu': '1'}`. */
export type Quantities = Readonly<Record<string, string | number>>;

/** What of a pod is read. */
export interface Pod extends KubeObject {
  readonly spec?: {
    readonly nodeName?: string;
    readonly containers?: readonly ContainerSpec[];
    readonly initContainers?: readonly ContainerSpec[];
    readonly overhead?: Quantities;
    /** What all containers share, from 1.34 on: goes before what they ask for by themselves. */
    readonly resources?: { readonly requests?: Quantities };
  };
  readonly status?: PodStatus;
}

/** Whether all containers of a pod have ended, for good or bad: it runs no more, and takes no room. */
export function hasEnded({ status }: Pick<Pod, 'status'>): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

/** Whether each container of a pod that had begun has ended, also while the pod itself is not said to have. */
export function runsNothing({ status }: Pick<Pod, 'status'>): boolean {
  const containers = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return containers.length > 0 && containers.every(({ state }) => state?.terminated !== undefined);
}

/** What of a container's description is read. */
export interface ContainerSpec {
  readonly name?: string;
  readonly image?: string;
  /** `Always` for an init container that runs beside the others. */
  readonly restartPolicy?: string;
  readonly resources?: { readonly requests?: Quantities; readonly limits?: Quantities };
}

/** What of a pod's status is read. */
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

/** How a container is. */
export interface ContainerStatus {
  readonly name: string;
  readonly ready?: boolean;
  readonly restartCount?: number;
  /** What its node gives it now, and has promised: a running container may be given other amounts, from 1.33 on. */
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
