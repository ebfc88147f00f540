import type { BucketLocation } from '../domain/bucket-location.ts';
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
  /** Cheapest first; only offers that satisfy `resources`. An empty list comes with the reason in `whyNone`. */
  offers(resources: Resources, options: OfferOptions): Promise<OfferList>;
  /**
   * Requests a machine and returns as soon as the provider has accepted. `key` makes it idempotent: the same key never
   * yields two machines, across calls and processes. Throws `ProviderRefusal` when the caller should try another offer.
   */
  create(offer: Offer, spec: MachineSpec, key: string, options: CallOptions): Promise<MachineId>;
  /**
   * Preflight: asks the provider whether it would accept such a machine, as far as it can say before a create. Creates
   * nothing. Throws the `ProviderRefusal` that `create` would throw; any other error means that the provider could not
   * be asked. Absent where only `create` finds out.
   */
  preflight?(offer: Offer, spec: MachineSpec, options: CallOptions): Promise<void>;
  /** One round trip for many machines. Unknown ids are reported as `gone`. */
  inspect(ids: readonly MachineId[], options: CallOptions): Promise<ReadonlyMap<MachineId, MachineStatus>>;
  /** Succeeds when the machine is already gone. May return before the machine is gone; `inspect` reports when it is. */
  destroy(id: MachineId, options: CallOptions): Promise<void>;
  /** Every machine whose tags include all the given ones. The sweep for machines without a record uses it. */
  list(tags: Readonly<Record<string, string>>, options: CallOptions): Promise<readonly ListedMachine[]>;
  /** The remote of a running machine, or of its first node if it has several. Cheap: makes no call. */
  remote(id: MachineId): Remote;
  /**
   * The nodes of a running machine, in the order of their ranks; the first is the one that `remote` returns. Absent
   * where `capabilities.multiNode` is false: each machine is one node.
   */
  nodes?(id: MachineId, options: CallOptions): Promise<readonly MachineNode[]>;
  /**
   * Calls `onChange` soon after the status of a machine of this home may have changed, until the signal aborts. For
   * providers that push changes. The callback carries no status: the caller reads it with `inspect`. Absent: callers
   * poll.
   */
  watch?(onChange: () => void, signal: AbortSignal): void;
  /**
   * Calls `onFreed` soon after a change after which a region's quota may have room, until the signal aborts. Refusals
   * with the scope `namespace` end then. Absent: only their backoff ends them.
   */
  watchQuota?(region: string, onFreed: () => void, signal: AbortSignal): void;
  /**
   * `stop` stops a machine so that it costs no more than its disk; `start` starts the same machine again. Both return
   * when the provider has accepted, and succeed when there is nothing to do. Absent where `capabilities.stopResume` is
   * false.
   */
  stop?(id: MachineId, options: CallOptions): Promise<void>;
  start?(id: MachineId, options: CallOptions): Promise<void>;
  /**
   * Removes an owner's resources beside machines (firewall groups, key pairs, disks). The owner is a service, by its
   * `svc-service-key`, or a controller with `credentials`, by its key: then with all its launches. Called when the
   * owner's last machine is gone; succeeds when there is nothing. Throws while the provider still has a resource; the
   * caller then calls again.
   */
  release(ownerKey: string, options: CallOptions): Promise<void>;
  /**
   * The bucket from which a region's machines fetch files themselves. Absent, or undefined, where files are copied to
   * each machine instead.
   */
  bucketLocation?(region: string): Promise<BucketLocation | undefined>;
  /**
   * The credentials of this provider for a controller at the target. Absent, or undefined, where it needs none, for
   * example because its machine has a role of its own.
   */
  credentials?(target: ControllerTarget, options: CallOptions): Promise<PortableCredentials | undefined>;
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

/** Options of a check. */
export interface CheckOptions extends CallOptions {
  /** How long calls for facts that are only displayed may delay the check, ms. */
  readonly factsMs?: number;
}

/** Credentials for a remote controller to use a provider as its user does: as few as possible. */
export interface PortableCredentials {
  /** The list of copied items, for the user: `keys of the AWS profile default`. */
  readonly summary: string;
  /** Files of mode 0600, by their path below the controller's home. */
  readonly files: readonly PortableFile[];
  /** Variables the controller gets. */
  readonly environment: Readonly<Record<string, string>>;
}

/** A file that a remote controller finds in its home. */
export interface PortableFile {
  /** Relative to the home. */
  readonly path: string;
  readonly content: string;
  /** A file that already exists stays as it is. */
  readonly once?: boolean;
}

/** The provider and home of a controller to deploy. */
export interface ControllerTarget {
  readonly provider: string;
  /**
   * Tag `svc-owner` of the controller's launches; the home that deployed the controller finds its machines by it.
   * Absent while the controller is only planned.
   */
  readonly key?: string;
  /** Its SVC_HOME, absolute on its machine. */
  readonly home: string;
}

/** Options of a list of offers. */
export interface OfferOptions extends CallOptions {
  /** Also report the provider's machines that do not satisfy the request, with reasons: for explanations. */
  readonly explain?: boolean;
  /** The task's configuration of providers: it may request, or allow, other machines than the user's configuration. */
  readonly providerConfig?: ProviderConfig | undefined;
}

/** Data rather than optional methods, so that the planner can filter and the docs table can be generated. */
export type Capabilities = Readonly<Record<'spot' | 'stopResume' | 'customImages' | 'openPorts' | 'multiNode' | 'gpus', boolean>> & {
  /** Whether disks, and networks, come in tiers of speed. Absent means no. */
  readonly diskTiers?: boolean;
  readonly networkTiers?: boolean;
  /**
   * Whether files may be put anywhere on its machines, rather than only into the folders of a replica. Absent means no.
   */
  readonly mountsAnywhere?: boolean;
};

declare const machineId: unique symbol;
/** A machine's id, unique within its provider. */
export type MachineId = string & { readonly [machineId]: true };

/** Whether a text, such as one from the database, can be an id. The caller must know which provider it belongs to. */
export function isMachineId(text: string): text is MachineId {
  return text !== '';
}

/** Treats a text from storage as a machine's id. */
export function assertMachineId(id: string): asserts id is MachineId {
  if (id === '') throw new SvcError('SVC_INTERNAL', 'A machine has an empty id.');
}

/** A machine for rent: location, size, price. Plain data: it is stored with the replica. */
export interface Offer {
  readonly provider: string;
  readonly region: string;
  readonly zone: string | undefined;
  /** The provider's name for it, or a description such as `2x CPU, 4 GB`. */
  readonly instanceType: string;
  readonly cpus: number;
  readonly memoryGb: number;
  /** `name` is the catalogue's canonical name. `memoryGb` is that of one accelerator, where it is known. */
  readonly accelerator: { readonly name: string; readonly count: number; readonly memoryGb?: number | undefined } | undefined;
  readonly spot: boolean;
  /** US dollars for the machine with the requested disk; 0 for machines that the user owns. */
  readonly hourlyUsd: number;
  /**
   * How many nodes of such machines fit now, for plans. Absent where that is unknown or unlimited. Others may use the
   * room meanwhile.
   */
  readonly room?: number | undefined;
}

/** A machine the provider has that does not satisfy the request. `why`: a clause such as `has 2 vCPUs, 4+ requested`. */
export interface RejectedOffer {
  readonly offer: Offer;
  readonly why: string;
}

/** Offers, or why there are none: a sentence for users that names the request and the existing machines. */
export interface OfferList {
  readonly offers: readonly Offer[];
  readonly whyNone: string | undefined;
  /**
   * There are none because the requested region or zone does not belong to this provider, whatever else is requested.
   */
  readonly isMisnamed?: boolean;
  /** A caveat about the figures, for example that they are old: a sentence. */
  readonly notice?: string | undefined;
  /** With `explain` only. */
  readonly rejected?: readonly RejectedOffer[];
}

/** The properties of a new machine besides the offer. */
export interface MachineSpec {
  /** `svc-service`, `svc-service-key`, `svc-replica`, `svc-key` and the like; `list` finds the machine by them. */
  readonly tags: Readonly<Record<string, string>>;
  /** The user's own `labels`, put on the machine unchanged. */
  readonly labels: Readonly<Record<string, string>>;
  /** Ports that programs on the machine serve. */
  readonly ports: readonly number[];
  /**
   * Whether its program listens on `$SVC_REPLICA_PORT`, whatever its value. Then it can get another port where `ports`
   * are taken.
   */
  readonly followsPort?: boolean;
  /** Addresses or CIDR ranges that may connect to `ports`. Empty: only clients with SSH access to the machine. */
  readonly clients: readonly string[];
  readonly diskSizeGb: number;
  readonly diskTier: Resources['diskTier'];
  /** As in the service's file: one for all regions, or by region. */
  readonly imageId: Resources['imageId'];
  /** The number of its nodes, which start together; more than 1 only where `capabilities.multiNode`. */
  readonly nodes: number;
  /** Volumes that exist at the provider, by the folder where they are mounted: `{'/data': 'models'}`. */
  readonly volumes: Readonly<Record<string, string>>;
  /** The task's `config` for providers; each provider reads its own part. */
  readonly providerConfig: ProviderConfig;
  /**
   * A replica runs a task. A controller may launch replicas and gets the provider's rights for that (an instance role).
   */
  readonly role: 'replica' | 'controller';
}

/**
 * `preempted`: the provider reclaimed the machine. `deleted`: it was removed, or its processes died. `notice` announces
 * that the provider will reclaim it: `interruption` at about the given time (ms since the epoch), `rebalance` when that
 * has become likely.
 */
export type MachineStatus =
  /**
   * `message`: why it does not run yet, in the provider's own words, where that is useful. `detail`, also of a gone
   * machine: the provider's full text, where `message` is the short form; for the log. `isQueued`: it waits for room,
   * and the provider ends that wait when it takes too long.
   */
  | {
      readonly state: 'booting';
      readonly message?: string;
      readonly detail?: string;
      readonly isQueued?: boolean;
      readonly silence?: MachineSilence;
    }
  /**
   * `host`: name or address at which others reach its ports, if it has one. `silence`: it ran when the provider last
   * knew.
   */
  | { readonly state: 'running'; readonly notice?: MachineNotice; readonly host?: string; readonly silence?: MachineSilence }
  | { readonly state: 'stopped' }
  /**
   * `message`: the provider's own explanation, a sentence. `isHopeless`: it never ran, and an identical request would
   * not run either, as with an image that does not exist. `mayPass`: `message` is about the provider at that time, such
   * as a lack of room, and not about the request. `refusal`: the provider refused it after it had accepted; kind (the
   * cause) and scope as those of a `ProviderRefusal`.
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
  /** A sentence. */
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

/** A machine as found by `list`. */
export interface ListedMachine {
  readonly id: MachineId;
  readonly tags: Readonly<Record<string, string>>;
}

/** The finding for a provider, for `svc check`. */
export interface ProviderCheck {
  readonly enabled: boolean;
  /** One line: the finding, or why the provider cannot be used. */
  readonly summary: string;
  /** Remedies that enable or improve it; one sentence or command each. */
  readonly remedies: readonly string[];
  /** Further facts, label and value: the isolation used and why, regions, GPUs. */
  readonly details: readonly (readonly [label: string, value: string])[];
  /**
   * Why machines of this provider share their ports, so that a program has to listen on `$SVC_REPLICA_PORT`: a clause.
   * Undefined where each machine has all ports to itself.
   */
  readonly sharedPorts: string | undefined;
  /**
   * Set when the provider cannot be used now only because it, or a part of it, did not answer in time. A clause such as
   * `the context east did not answer within 9 s`. A later check may get an answer. Absent otherwise.
   */
  readonly slow?: string;
}

/** Whether a machine has all the tags that a caller of `Provider.list` requests. */
export function hasTags(tags: Readonly<Record<string, string>>, required: Readonly<Record<string, string>>): boolean {
  return Object.entries(required).every(([name, value]) => tags[name] === value);
}
