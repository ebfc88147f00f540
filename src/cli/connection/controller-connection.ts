import type { ApiClient } from '../../api/client.ts';
import type { ResourceAlternatives, Task } from '../../domain/task.ts';
import type { ControllerDifference } from '../../launcher/controller-differences.ts';
import type { ControllerPlan } from '../../launcher/controller-plan.ts';
import type { ControllerRecord } from '../../launcher/controller-record.ts';
import type { KubernetesControllerStatus } from '../../launcher/high-availability/status.ts';
import type { MachineStatus } from '../../providers/provider.ts';

/** Called with the current step, for people, while a controller is being deployed. */
export type OnStep = (text: string) => void;

/** The connection to one controller: local, remote or in a Kubernetes cluster. Ctrl-C ends calls under way. */
export interface ControllerConnection {
  /** Starts the controller when it does not run. On this machine a new controller replaces an older version. */
  client(onStep: OnStep): Promise<ApiClient>;
  /** Starts the controller only when an earlier one left services, as after a crash; undefined when none are left. */
  existing(onStep?: OnStep): Promise<ApiClient | undefined>;
  /** Never starts one. It may have another version: then only `health` and `stopController` are sure to work. */
  running(): Promise<ApiClient | undefined>;
  /**
   * Copies the files of a task, read from the file `source`, to the controller's machine. Returns their name there;
   * undefined when nothing is copied, as for a local controller. Call `client` first.
   */
  bring(task: Task, source: string, onStep: OnStep): Promise<string | undefined>;
}

/** Connects to this home's controller, wherever it is. Throws SVC_HOME_UNUSABLE when the path cannot be a home. */
export interface Connection extends ControllerConnection {
  /** Deploys a missing controller where the configuration or the providers require it, near the machines of `near`. */
  client(onStep?: OnStep, near?: ResourceAlternatives): Promise<ApiClient>;
  bring(task: Task, source: string, onStep?: OnStep): Promise<string | undefined>;
  /**
   * Throws for an impossible controller: SVC_CONTROLLER_KIND, SVC_NEEDS_KUBERNETES, SVC_NO_CONTROLLER_IMAGE. Starts
   * nothing. Call it before planning, and before calling any provider.
   */
  preflight(): Promise<void>;
  /** Where the controller is, or would be; undefined when that is this machine, as configured. Starts nothing. */
  plan(near: ResourceAlternatives, onStep?: OnStep): Promise<ControllerPlan | undefined>;
  /** Management of a remote controller and its machine; undefined when there is none. */
  remoteController(): Promise<RemoteController | undefined>;
}

/** The connection to the controller on this machine. */
export interface LocalController extends ControllerConnection {
  /** Whether the controller runs, or has left services that it would manage. */
  isInUse(): Promise<boolean>;
}

/** A remote controller and its machine. */
export interface RemoteController extends ControllerConnection {
  /** Deploys a remote controller if configuration or providers require one; undefined if they require a local one. */
  clientIfChosen(onStep: OnStep, near: ResourceAlternatives | undefined): Promise<ApiClient | undefined>;
  /** Throws when the configured controller cannot be made. An existing controller is used unchanged. */
  preflight(): Promise<void>;
  plan(near: ResourceAlternatives, onStep?: OnStep): Promise<ControllerPlan | undefined>;
  /** The plan of a local controller that differs from the configuration; undefined when there is nothing to report. */
  planWhileLocal(): Promise<ControllerPlan | undefined>;
  record(): ControllerRecord | undefined;
  /** State of the controller's machine, from the provider; undefined when no provider has returned a machine yet. */
  machine(): Promise<MachineStatus | undefined>;
  differences(): Promise<readonly ControllerDifference[]>;
  upgrade(onStep: OnStep): Promise<{ readonly isNew: boolean }>;
  /** Terminates its machine. `purge`: even if it does not answer; returns that machine, which may still exist. */
  remove(purge: boolean, onStep: OnStep): Promise<string | undefined>;
  /** For a controller in a Kubernetes cluster, which survives its node; absent for a single program on one machine. */
  readonly inCluster?: KubernetesOperations;
}

/** Operations that only a controller in a Kubernetes cluster has. */
export interface KubernetesOperations {
  status(): Promise<KubernetesControllerStatus>;
  /** The API of the current leader, if it answers now. */
  leading(): Promise<ApiClient | undefined>;
  start(onStep: OnStep): Promise<void>;
  /** Ends the controllers; balancers continue. */
  stop(): Promise<void>;
  restart(onStep: OnStep): Promise<void>;
}
