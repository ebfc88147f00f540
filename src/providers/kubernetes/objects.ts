import type { KubeObject } from '../../kubernetes/kube-api.ts';
import type { Condition, Quantities } from '../../kubernetes/pod.ts';

/** What of a node is read. */
export interface Node extends KubeObject {
  readonly spec?: { readonly unschedulable?: boolean; readonly taints?: readonly Taint[] };
  readonly status?: { readonly allocatable?: Quantities; readonly conditions?: readonly Condition[] };
}

/** What keeps pods from a node that do not tolerate it. */
export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

/** What a pod tolerates; as Kubernetes writes it. */
export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number;
}

/** What of an event is read. */
export interface ClusterEvent extends KubeObject {
  readonly reason?: string;
  readonly message?: string;
  readonly type?: string;
  readonly count?: number;
  /** Instead of `count`, of those who use the newer API. */
  readonly series?: { readonly count?: number };
  readonly involvedObject?: { readonly kind?: string; readonly name?: string; readonly uid?: string };
  readonly lastTimestamp?: string;
  readonly eventTime?: string;
}

/** An object that others belong to. */
export type ConfigMap = KubeObject;
