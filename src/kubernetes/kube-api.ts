import type { Duplex } from 'node:stream';
import { isObject } from '../shared/json.ts';

/**
 * The API of one Kubernetes cluster, with the rights of one user. Paths are Kubernetes' own, such as
 * `/api/v1/namespaces/default/pods/web`. Besides what a method documents, each may throw:
 * - SVC_KUBERNETES (transient): the API server does not answer, or answers with an error of its own.
 * - SVC_CREDENTIALS: it does not know the user, or the login has expired.
 * - SVC_DENIED: the user may not do this; the message names verb, resource and namespace.
 * - SVC_NOT_LEADER: where a call is fenced.
 * Requests without an answer are repeated only when that is harmless.
 */
export interface KubeApi {
  /** The context's name in the kubeconfig; `in-cluster`: the service account of the pod that this process runs in. */
  readonly context: string;
  /** The namespace that the context names; else `default`. */
  readonly namespace: string;
  /** Whether this process runs in a pod of the same Kubernetes cluster and reaches pods at their addresses. */
  readonly isInside: boolean;
  /** Undefined when the object does not exist. */
  get<T extends KubeObject>(path: string, options?: KubeCallOptions): Promise<T | undefined>;
  /** Reads page by page. */
  list<T extends KubeObject>(path: string, options?: KubeListOptions<T>): Promise<KubeList<T>>;
  /** Server-side apply as field manager `svc`; takes over fields from other managers. The path is the object's own. */
  apply<T extends KubeObject>(path: string, object: KubeDraft, options?: KubeTrialOptions): Promise<T>;
  /** Creates an object in a collection; undefined when an object of that name exists. */
  create<T extends KubeObject>(path: string, object: KubeDraft, options?: KubeCallOptions): Promise<T | undefined>;
  /** Replaces the object; undefined when its `metadata.resourceVersion` is no longer current or it was removed. */
  replace<T extends KubeObject>(path: string, object: T, options?: KubeCallOptions): Promise<T | undefined>;
  /** JSON merge patch, or a strategic one; undefined when the object does not exist. */
  merge<T extends KubeObject>(path: string, change: unknown, options?: KubeMergeOptions): Promise<T | undefined>;
  /** False when the object did not exist. */
  remove(path: string, options?: KubeRemoval): Promise<boolean>;
  /** Any reply as text, such as `/version` or the logs of a pod. */
  text(path: string, options?: KubeCallOptions & { readonly query?: Readonly<Record<string, string>> }): Promise<string>;
  /**
   * One watch connection: calls `onEvent` for each change after `resourceVersion`. Resolves when the server ends it, it
   * breaks, nothing comes for too long (not even a bookmark), or the signal aborts.
   */
  watch<T extends KubeObject>(path: string, options: KubeWatch<T>): Promise<KubeWatchEnd>;
  /** Runs a command in a container. Settles when the command has started; after that the signal has no effect. */
  exec(pod: PodRef, command: readonly string[], options?: KubeCallOptions & { readonly stdin?: boolean }): Promise<PodProcess>;
  /** Opens a connection to a pod's port. It is destroyed with the reason when no program listens on that port. */
  portForward(pod: PodRef, port: number, options?: KubeCallOptions): Promise<Duplex>;
}

/** Calls that can be cancelled. */
export interface KubeCallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Options of changes that can be dry runs. */
export interface KubeTrialOptions extends KubeCallOptions {
  /** The server validates the change, but does not persist it. */
  readonly dryRun?: boolean;
}

/** Options of a merge patch. */
export interface KubeMergeOptions extends KubeTrialOptions {
  /** Merges lists such as `status.conditions` by their keys; a JSON merge patch would replace the whole list. */
  readonly isStrategic?: boolean;
}

/** Selects objects of a collection. */
export interface KubeSelection extends KubeCallOptions {
  readonly labels?: Readonly<Record<string, string>>;
  /** In Kubernetes' syntax; `svc-owner` selects all objects with this label. Added to `labels`. */
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** Options of a list. */
export interface KubeListOptions<T extends KubeObject> extends KubeSelection {
  /** Applied to each object, page by page: all pods of a large Kubernetes cluster in full would take gigabytes. */
  readonly keep?: ((object: T) => T) | undefined;
}

/** Options of a removal. */
export interface KubeRemoval extends KubeCallOptions {
  /** s; 0 removes a pod without waiting for its node. */
  readonly gracePeriodSeconds?: number;
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan';
  /** Removes only the object with this UID, not a later one of the same name. */
  readonly uid?: string;
}

/** Options of a watch. */
export interface KubeWatch<T extends KubeObject> {
  readonly resourceVersion: string;
  readonly selection?: KubeSelection;
  readonly onEvent: (event: KubeEvent<T>) => void;
  readonly onOpen?: () => void;
  readonly signal: AbortSignal;
}

/** A change. `BOOKMARK` carries only a newer version to continue from. */
export interface KubeEvent<T extends KubeObject> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: T;
}

/** `expired`: the version is too old (410), list again. `ended`: continue from the last version. */
export interface KubeWatchEnd {
  readonly how: 'ended' | 'expired' | 'failed' | 'aborted';
  readonly reason?: string;
}

/** A pod and one of its containers (default: the first). */
export interface PodRef {
  readonly namespace: string;
  readonly name: string;
  readonly container?: string;
}

/** A command that runs in a container. */
export interface PodProcess {
  /** Output and input, with backpressure. Ending it closes the input only if `canCloseInput`. */
  readonly stdio: Duplex;
  readonly stderr: NodeJS.ReadableStream;
  /** True from Kubernetes 1.30 on. Before, a command that reads its whole input must be sent the length in band. */
  readonly canCloseInput: boolean;
  /** `exitCode` undefined: the connection was lost first. `message`: the API server's. */
  readonly ended: Promise<{ readonly exitCode: number | undefined; readonly message: string | undefined }>;
  /** Whether the connection keeps this process alive; it does at first. */
  holdProcess(isHeld: boolean): void;
  /** Closes the connection. Kubernetes does not end the command. */
  close(): void;
}

/** The fields of every object that svc reads. Other modules add the fields of their kinds. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: KubeMetadata;
}

// oxlint-disable typescript/no-unnecessary-type-parameters -- the caller names the kind that the path it asked for has
/** Whether a value is an object of Kubernetes. Fields of its kind are not checked: the API server is trusted. */
export function isKubeObject<T extends KubeObject>(value: unknown): value is T {
  return isObject(value) && isObject(value['metadata']);
}

/** The common part of all objects. */
export interface KubeMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp?: string;
  /** Time of the removal request plus the grace period. */
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly { readonly kind: string; readonly name: string; readonly uid: string }[];
}

/** An object to create or apply. */
export interface KubeDraft {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>> & { readonly name: string };
  readonly [field: string]: unknown;
}

/** A collection at the version `resourceVersion`. */
export interface KubeList<T extends KubeObject> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}
