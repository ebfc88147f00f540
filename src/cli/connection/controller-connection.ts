import type { ApiClient } from '../../api/client.ts';
import type { ResourceAlternatives, Task } from '../../domain/task.ts';
import type { ControllerDifference } from '../../launcher/controller-differences.ts';
import type { ControllerPlan } from '../../launcher/controller-plan.ts';
import type { ControllerRecord } from '../../launcher/controller-record.ts';
import type { KubernetesControllerStatus } from '../../launcher/high-availability/status.ts';
import type { MachineStatus } from '../../providers/provider.ts';

/** Called with the current step, for people, while a controller is being deployed. */
export type OnStep = (text: string) => void;

/**
 * The connection to one controller: on this machine, on another one, or in a Kubernetes cluster. Calls under way end at
 * Ctrl-C.
 */
export interface ControllerConnection {
  /** Starts the controller when it does not run. On this machine a new controller replaces an older version. */
  client(onStep: OnStep): Promise<ApiClient>;
  /**
   * Starts the controller only when an earlier one left services, as after a crash. Undefined when there is nothing to
   * manage.
   */
  existing(onStep?: OnStep): Promise<ApiClient | undefined>;
  /**
   * Never starts a controller. The running one may have another version. Then only `health` and `stopController` are
   * sure to work.
   */
  running(): Promise<ApiClient | undefined>;
  /**
   * Copies the files that a task names to the controller's machine, and returns their name there. Undefined when there
   * is nothing to copy, or the controller runs on this machine and reads them itself. `source`: the file that the task
   * was read from. Call `client` first.
   */
  bring(task: Task, source: string, onStep: OnStep): Promise<string | undefined>;
}

/**
 * What commands use: the connection to the controller of this home, wherever it is. Throws SVC_HOME_UNUSABLE when the
 * path cannot be a home.
 */
export interface Connection extends ControllerConnection {
  /**
   * Without a controller, deploys one where the configuration or the enabled providers require it. `near`: the task's
   * resources. A new controller goes where the task's machines will be.
   */
  client(onStep?: OnStep, near?: ResourceAlternatives): Promise<ApiClient>;
  bring(task: Task, source: string, onStep?: OnStep): Promise<string | undefined>;
  /**
   * Throws when the configured controller is not possible: SVC_CONTROLLER_KIND, SVC_NEEDS_KUBERNETES,
   * SVC_NO_CONTROLLER_IMAGE. Starts nothing. Call it before planning, and before calling any provider.
   */
  preflight(): Promise<void>;
  /**
   * Where the controller is, or would be once a service is deployed. Undefined when that is this machine, as
   * configured. Starts nothing.
   */
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
  /**
   * Deploys a remote controller when the configuration or the enabled providers require one; undefined when they
   * require a local one.
   */
  clientIfChosen(onStep: OnStep, near: ResourceAlternatives | undefined): Promise<ApiClient | undefined>;
  /** Throws when the configured controller cannot be made. An existing controller is used unchanged. */
  preflight(): Promise<void>;
  /** Where the controller is, or would be; undefined when that is this machine. */
  plan(near: ResourceAlternatives, onStep?: OnStep): Promise<ControllerPlan | undefined>;
  /** The plan of a local controller that differs from the configuration; undefined when there is nothing to report. */
  planWhileLocal(): Promise<ControllerPlan | undefined>;
  /** The record of the controller. */
  record(): ControllerRecord | undefined;
  /** State of the controller's machine, from the provider; undefined when no provider has returned a machine yet. */
  machine(): Promise<MachineStatus | undefined>;
  /** Where the controller differs from the current configuration. */
  differences(): Promise<readonly ControllerDifference[]>;
  upgrade(onStep: OnStep): Promise<{ readonly isNew: boolean }>;
  /**
   * Terminates its machine. With `purge` also when the machine does not answer: returns that machine, which may still
   * exist.
   */
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
