import type { KubeObject } from '../../kubernetes/kube-api.ts';
import type { Condition, Quantities } from '../../kubernetes/pod.ts';

/** The fields of a node that svc reads. */
export interface Node extends KubeObject {
  readonly spec?: { readonly unschedulable?: boolean; readonly taints?: readonly Taint[] };
  readonly status?: { readonly allocatable?: Quantities; readonly conditions?: readonly Condition[] };
}

/** Keeps pods that do not tolerate it from a node. */
export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

/** A pod's toleration, as Kubernetes writes it. */
export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number;
}

/** The fields of an event that svc reads. */
export interface PodEvent extends KubeObject {
  readonly reason?: string;
  readonly message?: string;
  readonly type?: string;
  readonly count?: number;
  /** Replaces `count` in events of the newer API. */
  readonly series?: { readonly count?: number };
  readonly involvedObject?: { readonly kind?: string; readonly name?: string; readonly uid?: string };
  readonly lastTimestamp?: string;
  readonly eventTime?: string;
}

/** Only used as an owner of other objects. */
export type ConfigMap = KubeObject;
