import type { Duplex } from 'node:stream';

/**
 * The API of one cluster as one user sees it. Paths are those of Kubernetes: `/api/v1/namespaces/default/pods/web`. Besides what a method says each may
 * throw SVC_KUBERNETES (the API server does not answer, or answered with an error of its own: transient), SVC_CREDENTIALS (it does not know the user,
 * or the user's login has expired) and SVC_DENIED (the user may not do this; the message names verb, resource and namespace); and, where a call is
 * fenced, SVC_NOT_LEADER. Requests that did not get an answer are repeated only when that is harmless.
 */
export interface KubeApi {
  /** Name of the context in the kubeconfig; `in-cluster` for the service account of the pod that this process runs in. */
  readonly context: string;
  /** That the context names; else `default`. */
  readonly namespace: string;
  /** Whether this process runs in a pod of that very cluster, so that pods are reached at their addresses. */
  readonly isInside: boolean;
  /** An object; undefined when there is none. */
  get<T extends KubeObject>(path: string, options?: KubeCallOptions): Promise<T | undefined>;
  /** Everything of a collection, read page by page. */
  list<T extends KubeObject>(path: string, options?: KubeListOptions<T>): Promise<KubeList<T>>;
  /** Server-side apply as field manager `svc`; takes fields over from others. The path is the object's own. */
  apply<T extends KubeObject>(path: string, object: KubeDraft, options?: KubeTrialOptions): Promise<T>;
  /** Creates an object in a collection; undefined when one of that name exists. */
  create<T extends KubeObject>(path: string, object: KubeDraft, options?: KubeCallOptions): Promise<T | undefined>;
  /** Puts an object in the place of the one whose `metadata.resourceVersion` it carries; undefined when that has changed or gone meanwhile. */
  replace<T extends KubeObject>(path: string, object: T, options?: KubeCallOptions): Promise<T | undefined>;
  /** JSON merge patch; undefined when there is no such object. */
  merge<T extends KubeObject>(path: string, change: unknown, options?: KubeTrialOptions): Promise<T | undefined>;
  /** False when it was gone already. */
  remove(path: string, options?: KubeRemoval): Promise<boolean>;
  /** Any reply as text: `/version`, logs of a pod. */
  text(path: string, options?: KubeCallOptions & { readonly query?: Readonly<Record<string, string>> }): Promise<string>;
  /**
   * One watch connection: calls `onEvent` for each change after `resourceVersion`, until the server ends it, it breaks, nothing (not even a bookmark)
   * came for a while, or the signal aborts. Gives what ended it.
   */
  watch<T extends KubeObject>(path: string, options: KubeWatch<T>): Promise<KubeWatchEnd>;
  /** Runs a command in a container of a pod. Settles when the command has been started; after that the signal has no effect. */
  exec(pod: PodRef, command: readonly string[], options?: KubeCallOptions & { readonly stdin?: boolean }): Promise<PodProcess>;
  /** A connection to a port of a pod through the API server, once it is open. Destroyed with the reason when nobody listens there. */
  portForward(pod: PodRef, port: number, options?: KubeCallOptions): Promise<Duplex>;
}

/** Calls that can be cancelled. */
export interface KubeCallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Of changes that may be tried out. */
export interface KubeTrialOptions extends KubeCallOptions {
  /** The server does all that it does for a change, and then keeps nothing of it. */
  readonly dryRun?: boolean;
}

/** What of a collection is meant. */
export interface KubeSelection extends KubeCallOptions {
  readonly labels?: Readonly<Record<string, string>>;
  /** As Kubernetes writes them, such as `svc-owner` for all objects that have this label; added to `labels`. */
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** What is to be listed. */
export interface KubeListOptions<T extends KubeObject> extends KubeSelection {
  /** Of each object only so much is kept as this gives, page by page: all of a large cluster's pods as they are would take gigabytes. */
  readonly keep?: ((object: T) => T) | undefined;
}

/** How an object is to be removed. */
export interface KubeRemoval extends KubeCallOptions {
  /** s; 0 removes a pod without asking its node. */
  readonly gracePeriodSeconds?: number;
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan';
  /** Only this very object, not another one of the same name. */
  readonly uid?: string;
}

/** What is to be watched. */
export interface KubeWatch<T extends KubeObject> {
  readonly resourceVersion: string;
  readonly selection?: KubeSelection;
  readonly onEvent: (event: KubeEvent<T>) => void;
  /** Called when the server has taken the watch. */
  readonly onOpen?: () => void;
  readonly signal: AbortSignal;
}

/** A change; `BOOKMARK` only tells a newer version to go on from. */
export interface KubeEvent<T extends KubeObject> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: T;
}

/** `expired`: the version is too old (410), all has to be listed again; `ended`: go on from the last version; `failed`: it broke, with the reason. */
export interface KubeWatchEnd {
  readonly how: 'ended' | 'expired' | 'failed' | 'aborted';
  readonly reason?: string;
}

/** Which pod, and which of its containers; default: the first one. */
export interface PodRef {
  readonly namespace: string;
  readonly name: string;
  readonly container?: string;
}

/** A command that runs in a container. */
export interface PodProcess {
  /** Its input and, read, its output. Ending it closes the input only where the API server can do that (see `canCloseInput`). Backpressure works both ways. */
  readonly stdio: Duplex;
  readonly stderr: NodeJS.ReadableStream;
  /** Kubernetes from 1.30 on; before, a command whose input ends must be told in band how much comes. */
  readonly canCloseInput: boolean;
  /** How it ended: an exit code, or undefined when the connection was lost first, with what was said of it. */
  readonly ended: Promise<{ readonly exitCode: number | undefined; readonly message: string | undefined }>;
  /** Whether this process waits for the connection before it ends by itself; it does at first. */
  holdProcess(isHeld: boolean): void;
  /** Cuts the connection. The command itself may go on: Kubernetes does not end it. */
  close(): void;
}

/** What every object has. Kinds are described further where they are used; only fields that are used are named. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: KubeMetadata;
}

/** The common part of all objects. */
export interface KubeMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp?: string;
  /** When it is to be gone: the removal was asked for so many seconds of grace before. */
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly { readonly kind: string; readonly name: string; readonly uid: string }[];
}

/** An object that is to be. */
export interface KubeDraft {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>> & { readonly name: string };
  readonly [field: string]: unknown;
}

/** A collection as of `resourceVersion`. */
export interface KubeList<T extends KubeObject> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}
