import type { BucketLocation } from '../domain/bucket-location.ts';
import type { AllowedDisruption } from '../domain/disruption.ts';
import type { MachineLimits } from '../domain/machine-limits.ts';
import type { RefusalKind, RefusalScope } from '../domain/placement.ts';
import type { ProviderConfig, Resources } from '../domain/task.ts';
import type { Remote } from '../remote/remote.ts';
import { SvcError } from '../shared/errors.ts';

/** The operations of a provider. docs/internals/providers.md explains how to write one. */
export interface Provider {
  /** As users write it in `infra:`, lower case. */
  readonly name: string;
  readonly capabilities: Capabilities;
  /** Whether the provider can be used now, from this machine. Never throws for reasons that a user can fix. */
  check(options: CheckOptions): Promise<ProviderCheck>;
  /** Cheapest first; only offers that satisfy `resources`. If there are none, `whyNone` has the reason. */
  offers(resources: Resources, options: OfferOptions): Promise<OfferList>;
  /**
   * Requests a machine and returns as soon as the provider has accepted. The same `key` never yields two machines,
   * across calls and processes. Throws `ProviderRefusal` when the caller should try another offer.
   */
  create(offer: Offer, spec: MachineSpec, key: string, options: CallOptions): Promise<MachineId>;
  /**
   * Preflight: asks whether the provider would accept such a machine. Throws the `ProviderRefusal` of `create`; any
   * other error means that the provider could not be asked. Absent: only `create` finds out.
   */
  preflight?(offer: Offer, spec: MachineSpec, options: CallOptions): Promise<void>;
  /** One round trip for many machines. Unknown ids are reported as `gone`. */
  inspect(ids: readonly MachineId[], options: CallOptions): Promise<ReadonlyMap<MachineId, MachineStatus>>;
  /** Succeeds when the machine is already gone. May return before the machine is gone; `inspect` reports when it is. */
  destroy(id: MachineId, options: CallOptions): Promise<void>;
  /** Every machine that has all the given tags. The sweep for machines without a record uses it. */
  list(tags: Readonly<Record<string, string>>, options: ListOptions): Promise<readonly ListedMachine[]>;
  /** The remote of a running machine, or of its first node. Makes no call. */
  remote(id: MachineId): Remote;
  /** A running machine's nodes by rank; the first is that of `remote`. Absent without `capabilities.multiNode`. */
  nodes?(id: MachineId, options: CallOptions): Promise<readonly MachineNode[]>;
  /**
   * Calls `onChange` soon after the status of a machine of this home may have changed, until the signal aborts. The
   * caller then reads the status with `inspect`. Absent: callers poll.
   */
  watch?(onChange: () => void, signal: AbortSignal): void;
  /**
   * Calls `onFreed` soon after a region's quota may have gained room, until the signal aborts. Refusals with the scope
   * `namespace` end then. Absent: only their backoff ends them.
   */
  watchQuota?(region: string, onFreed: () => void, signal: AbortSignal): void;
  /**
   * Reports which machines of a service are ready, so that the provider's own operations consider it. Called when that
   * changes, and once a minute. Absent: the provider has no use for it.
   */
  reportReadiness?(report: ReadinessReport, options: CallOptions): Promise<void>;
  /**
   * A stopped machine costs no more than its disk; `start` starts the same machine again. Both return when the provider
   * has accepted, and succeed when there is nothing to do. Absent without `capabilities.stopResume`.
   */
  stop?(id: MachineId, options: CallOptions): Promise<void>;
  start?(id: MachineId, options: CallOptions): Promise<void>;
  /**
   * Removes a gone owner's resources beside machines (firewall groups, key pairs, disks). `ownerKey` is a service's
   * `svc-service-key`, or the key of a controller with `credentials`: then includes its launches. Succeeds when there
   * is nothing. Throws while the provider still has a resource; the caller then calls again.
   */
  release(ownerKey: string, options: RegionsOptions): Promise<void>;
  /** The bucket from which a region's machines fetch files. Absent or undefined: files are copied to each machine. */
  bucketLocation?(region: string): Promise<BucketLocation | undefined>;
  /** Credentials for a controller at the target. Absent or undefined: it needs none, as with a role of its machine. */
  credentials?(target: ControllerTarget, options: CallOptions): Promise<PortableCredentials | undefined>;
}

/** The readiness of a service's machines at one provider. */
export interface ReadinessReport {
  /** The service's `svc-service-key`. */
  readonly ownerKey: string;
  /** All machines of its replicas. Ready: the replica gets requests. */
  readonly machines: readonly { readonly id: MachineId; readonly isReady: boolean }[];
  readonly disruption: AllowedDisruption;
}

/** One of the nodes that make up a machine and start together. */
export interface MachineNode {
  readonly rank: number;
  /** The address at which the other nodes reach it. */
  readonly ip: string;
  readonly remote: Remote;
}

/** Every call to a provider can be cancelled. */
export interface CallOptions {
  readonly signal?: AbortSignal;
}

/** Options of a call that concerns all regions. */
export interface RegionsOptions extends CallOptions {
  /**
   * Called for each region that denies access while others do not, with the error: the call skips that region. The
   * account may have lost it. Absent: the call throws.
   */
  readonly onDenied?: (error: SvcError) => void;
}

/** Options of a listing. */
export interface ListOptions extends RegionsOptions {
  /** Whether the provider may leave out where this home has never requested a machine with the tags. Default: no. */
  readonly requestedOnly?: boolean;
}

/** Options of a check. */
export interface CheckOptions extends CallOptions {
  /** Maximum delay by calls for facts that are only displayed, ms. */
  readonly factsMs?: number;
}

/** Credentials for a remote controller to use a provider as its user does: as few as possible. */
export interface PortableCredentials {
  /** The copied items, for the user: `keys of the AWS profile default`. */
  readonly summary: string;
  /** Written with mode 0600 below the controller's home. */
  readonly files: readonly PortableFile[];
  readonly environment: Readonly<Record<string, string>>;
}

/** A file in a remote controller's home. */
export interface PortableFile {
  readonly path: string;
  readonly content: string;
  /** An existing file stays as it is. */
  readonly once?: boolean;
}

/** The provider and home of a controller to deploy. */
export interface ControllerTarget {
  readonly provider: string;
  /** Tag `svc-owner` of its launches; the home that deployed it finds them by this tag. Absent: it is only planned. */
  readonly key?: string;
  /** Its SVC_HOME, absolute on its machine. */
  readonly home: string;
}

/** Options of a list of offers. */
export interface OfferOptions extends CallOptions {
  /** Also report machines that do not satisfy the request, with reasons. */
  readonly explain?: boolean;
  /** The task's configuration of providers: it may request, or allow, other machines than the user's configuration. */
  readonly providerConfig?: ProviderConfig | undefined;
}

/** Data rather than optional methods, so that the planner can filter and the docs table can be generated. */
export type Capabilities = Readonly<Record<'spot' | 'stopResume' | 'customImages' | 'openPorts' | 'multiNode' | 'gpus', boolean>> & {
  /** Whether disks, and networks, come in tiers of speed. Absent: no. */
  readonly diskTiers?: boolean;
  readonly networkTiers?: boolean;
  /** Whether files may be put anywhere on its machines, not only into a replica's folders. Absent: no. */
  readonly mountsAnywhere?: boolean;
};

declare const machineId: unique symbol;
/** A machine's id, unique within its provider. */
export type MachineId = string & { readonly [machineId]: true };

/** Whether a text, such as one from the database, can be an id of some provider. */
export function isMachineId(text: string): text is MachineId {
  return text !== '';
}

/** Treats a stored text as a machine's id. Throws SVC_INTERNAL when it is empty. */
export function assertMachineId(id: string): asserts id is MachineId {
  if (id === '') throw new SvcError('SVC_INTERNAL', 'A machine has an empty id.');
}

/** A machine that can be rented, with its price. Plain data: it is stored with the replica. */
export interface Offer {
  readonly provider: string;
  readonly region: string;
  readonly zone: string | undefined;
  /** The provider's name for it, or a description such as `2x CPU, 4 GB`. */
  readonly instanceType: string;
  readonly cpus: number;
  readonly memoryGb: number;
  /** `name` is the catalogue's canonical name. `memoryGb` is that of one accelerator; undefined: unknown. */
  readonly accelerator: { readonly name: string; readonly count: number; readonly memoryGb?: number | undefined } | undefined;
  readonly spot: boolean;
  /** US dollars, with the requested disk; 0 for machines that the user owns. */
  readonly hourlyUsd: number;
  /** Maximum number of nodes that fit now. Others may take the room. Absent: unknown or unlimited. */
  readonly room?: number | undefined;
}

/** A machine that does not satisfy the request. `why` is a clause such as `has 2 vCPUs, 4+ requested`. */
export interface RejectedOffer {
  readonly offer: Offer;
  readonly why: string;
}

/** Offers, or in `whyNone` a sentence for users that names the request and the existing machines. */
export interface OfferList {
  readonly offers: readonly Offer[];
  readonly whyNone: string | undefined;
  /** There are none because the requested region or zone does not exist at this provider. */
  readonly isMisnamed?: boolean;
  /** There are none only because other machines have the room now. */
  readonly isFull?: boolean;
  /** A sentence about the figures, for example that they are old. */
  readonly notice?: string | undefined;
  /** With `explain` only. */
  readonly rejected?: readonly RejectedOffer[];
}

/** The properties of a new machine besides the offer. */
export interface MachineSpec {
  /** `svc-service`, `svc-service-key`, `svc-replica`, `svc-key` and the like; `list` finds the machine by them. */
  readonly tags: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly ports: readonly number[];
  /** Whether its program listens on `$SVC_REPLICA_PORT`. Then it gets another port where `ports` are taken. */
  readonly followsPort?: boolean;
  /** Addresses or CIDR ranges that may connect to `ports`. Empty: only clients with SSH access to the machine. */
  readonly clients: readonly string[];
  readonly diskSizeGb: number;
  readonly diskTier: Resources['diskTier'];
  /** One for all regions, or by region. */
  readonly imageId: Resources['imageId'];
  /** Nodes that start together; more than 1 only with `capabilities.multiNode`. */
  readonly nodes: number;
  /** Existing volumes by the folder where they are mounted: `{'/data': 'models'}`. */
  readonly volumes: Readonly<Record<string, string>>;
  readonly providerConfig: ProviderConfig;
  /** Enforced where machines share a computer. Absent: none. */
  readonly limits?: MachineLimits;
  /** A controller launches replicas, and gets the provider's rights for that (an instance role). */
  readonly role: 'replica' | 'controller';
}

/**
 * `preempted`: the provider reclaimed the machine. `deleted`: it was removed, or its processes died. `interruption`:
 * the provider will reclaim it at about `at` (ms since the epoch). `rebalance`: that has become likely.
 */
export type MachineStatus =
  /**
   * `message`: why it does not run yet, in the provider's words. `detail`, also of a gone machine: the full text behind
   * `message`, for the log. `isQueued`: it waits for room, and the provider ends a wait that takes too long.
   */
  | {
      readonly state: 'booting';
      readonly message?: string;
      readonly detail?: string;
      readonly isQueued?: boolean;
      readonly silence?: MachineSilence;
    }
  /** `host`: the address at which others reach its ports. `silence`: it ran when the provider last knew. */
  | { readonly state: 'running'; readonly notice?: MachineNotice; readonly host?: string; readonly silence?: MachineSilence }
  | { readonly state: 'stopped' }
  /**
   * `message`: the provider's explanation, a sentence. `isHopeless`: an identical request would not run either, as with
   * an image that does not exist. `mayPass`: `message` is about the provider at that time, such as a lack of room, and
   * not about the request. `refusal`: the provider refused the machine after it had accepted it.
   */
  | {
      readonly state: 'gone';
      readonly reason: 'preempted' | 'deleted' | 'unknown';
      readonly message?: string;
      readonly detail?: string;
      readonly isHopeless?: boolean;
      readonly mayPass?: boolean;
      readonly refusal?: LateRefusal;
    };

/** Why the provider does not know a machine's state. The machine may still run: its health probes decide. */
export interface MachineSilence {
  readonly message: string;
  /** Whether the provider reclaims spot capacity there. */
  readonly isTaken: boolean;
  /** Whether too many machines are silent at once to remove any of them because of it. */
  readonly isWidespread: boolean;
  /** Whether the machine was asked to end; it will end when it reports again. */
  readonly isEnding: boolean;
}

/** Why a machine that the provider had accepted never ran. */
export interface LateRefusal {
  readonly kind: RefusalKind;
  readonly scope: RefusalScope;
}

/** A provider's warning that it may reclaim a machine: an interruption notice or a rebalance recommendation. */
export interface MachineNotice {
  readonly kind: 'interruption' | 'rebalance';
  readonly at: number | undefined;
}

/** A machine in the result of `list`. */
export interface ListedMachine {
  readonly id: MachineId;
  readonly tags: Readonly<Record<string, string>>;
}

/** The result of checking a provider, for `svc check`. */
export interface ProviderCheck {
  readonly enabled: boolean;
  /** One line: the finding, or why the provider cannot be used. */
  readonly summary: string;
  /** One sentence or command each. */
  readonly remedies: readonly string[];
  /** Further facts: the isolation used and why, regions, GPUs. */
  readonly details: readonly (readonly [label: string, value: string])[];
  /** Why machines share ports, so that programs must use `$SVC_REPLICA_PORT`: a clause. Undefined: they share none. */
  readonly sharedPorts: string | undefined;
  /**
   * Set when the provider cannot be used only because it, or a part of it, did not answer in time; a later check may
   * succeed. A clause: `the context east did not answer within 9 s`.
   */
  readonly slow?: string;
}

/** Whether a machine has all the tags that a caller of `Provider.list` requests. */
export function hasTags(tags: Readonly<Record<string, string>>, required: Readonly<Record<string, string>>): boolean {
  return Object.entries(required).every(([name, value]) => tags[name] === value);
}
