import type { BucketPlace } from '../domain/bucket-place.ts';
import type { PlaceConfig, Resources } from '../domain/task.ts';
import { SvcError } from '../shared/errors.ts';
import type { Remote } from '../remote/remote.ts';

/** The smallest thing a place must be able to do. docs/internals/providers.md is the guide for writing one. */
export interface Provider {
  /** As users write it in `infra:`, lower case. */
  readonly name: string;
  readonly capabilities: Capabilities;
  /** Whether the place can be used here and now; never throws for reasons a user can mend. */
  check(options: CallOptions): Promise<ProviderCheck>;
  /** Cheapest first; only offers that satisfy `resources`. An empty list comes with the reason in `whyNone`. */
  offers(resources: Resources, options: OfferOptions): Promise<OfferList>;
  /**
   * Asks for a machine and returns as soon as the place accepted. `key` makes it idempotent: the same key never yields two
   * machines, however often and from however many processes it is called. Throws `PlaceRefusal` when another offer should be tried.
   */
  create(offer: Offer, spec: MachineSpec, key: string, options: CallOptions): Promise<MachineId>;
  /**
   * Asks a place whether it would take such a machine, as far as it can say that beforehand, and makes nothing. Throws the `PlaceRefusal` that `create` would
   * throw; any other error means that it could not be asked. Absent where only `create` finds out.
   */
  rehearse?(offer: Offer, spec: MachineSpec, options: CallOptions): Promise<void>;
  /** One round trip for many machines. Unknown ids come back as `gone`. */
  inspect(ids: readonly MachineId[], options: CallOptions): Promise<ReadonlyMap<MachineId, MachineStatus>>;
  /** Succeeds when the machine is already gone. May return before it is; `inspect` tells when. */
  destroy(id: MachineId, options: CallOptions): Promise<void>;
  /** Every machine whose tags include all the given ones: for the sweep that finds what no record knows. */
  list(tags: Readonly<Record<string, string>>, options: CallOptions): Promise<readonly ListedMachine[]>;
  /** How to work on a running machine; on the first of its nodes where it has several. Cheap; no call is made. */
  remote(id: MachineId): Remote;
  /**
   * The nodes of a running machine, in the order of their ranks; the first is what `remote` gives. Absent where `capabilities.multiNode` is false: then a
   * machine is one node.
   */
  nodes?(id: MachineId, options: CallOptions): Promise<readonly MachineNode[]>;
  /**
   * Calls `onChange` soon after the status of some machine of this home may have changed, until the signal aborts, for places that can tell without being
   * asked. Whoever is told asks with `inspect`. Absent: they are asked now and then.
   */
  watch?(onChange: () => void, signal: AbortSignal): void;
  /**
   * Stops a machine so that it costs no more than its disk, and `start` brings the same one back. Both return when the place accepted and are
   * success when there is nothing to do. SVC_NOT_SUPPORTED where `capabilities.stopResume` is false.
   */
  stop(id: MachineId, options: CallOptions): Promise<void>;
  start(id: MachineId, options: CallOptions): Promise<void>;
  /**
   * Removes what was made beside machines (firewall groups, key pairs, disks) for an owner, by its `svc-service-key`, and for all that a controller
   * launched which `credentials` was asked for, by its key. Called when its last machine is gone; success when there is nothing. Throws while the place still holds on to something, to be called again.
   */
  release(ownerKey: string, options: CallOptions): Promise<void>;
  /**
   * Where files for machines of a region are to be put, so that these fetch them by themselves. Absent, or undefined, where files are copied to
   * each machine instead.
   */
  bucketPlace?(region: string): Promise<BucketPlace | undefined>;
  /** What a controller there needs to use this place; absent, or undefined, where that is nothing: its machine has a role of its own, say. */
  credentials?(target: ControllerTarget, options: CallOptions): Promise<PortableCredentials | undefined>;
}

/** One of the nodes that make up a machine and start together. */
export interface MachineNode {
  readonly rank: number;
  /** At which the other nodes reach it. */
  readonly ip: string;
  readonly remote: Remote;
}

/** Every call to a place can be cancelled. */
export interface CallOptions {
  readonly signal?: AbortSignal;
}

/** What a controller on another machine needs to use a place as its user does: as little as possible. */
export interface PortableCredentials {
  /** What is given away, for the user: `keys of the AWS profile default`. */
  readonly summary: string;
  /** Files of mode 0600, by their path below the controller's home. */
  readonly files: readonly PortableFile[];
  /** Variables the controller gets. */
  readonly environment: Readonly<Record<string, string>>;
}

/** A file that a controller finds in its home. */
export interface PortableFile {
  /** Relative to the home. */
  readonly path: string;
  readonly content: string;
  /** One that is there already stays as it is. */
  readonly once?: boolean;
}

/** Where a controller is going to be. */
export interface ControllerTarget {
  readonly provider: string;
  /** Tag `svc-owner` of what it will launch, by which the one who brought it up finds that; absent while it is only planned. */
  readonly key?: string;
  /** Its SVC_HOME, absolute on its machine. */
  readonly home: string;
}

/** What a list of offers is to contain. */
export interface OfferOptions extends CallOptions {
  /** Also tell of what the place has and why it does not satisfy: for explanations. */
  readonly explain?: boolean;
  /** What the task says for places: it may ask for, or allow, other machines than the configuration does. */
  readonly placeConfig?: PlaceConfig | undefined;
}

/** Data rather than optional methods, so that the planner can filter and the docs table can be generated. */
export type Capabilities = Readonly<Record<'spot' | 'stopResume' | 'customImages' | 'openPorts' | 'multiNode' | 'gpus', boolean>> & {
  /** Whether disks come in tiers of speed, and networks as well; absent is no. */
  readonly diskTiers?: boolean;
  readonly networkTiers?: boolean;
  /** Whether files may be put anywhere on its machines, rather than only into the folders of a replica; absent is no. */
  readonly mountsAnywhere?: boolean;
};

declare const machineId: unique symbol;
/** A machine's id, unique within its provider. */
export type MachineId = string & { readonly [machineId]: true };

/** Whether a text, such as one from the database, can be an id; which place it belongs to is for the caller to know. */
export function isMachineId(text: string): text is MachineId {
  return text !== '';
}

/** Takes an id that was stored as text for what it is. */
export function assertMachineId(id: string): asserts id is MachineId {
  if (id === '') throw new SvcError('SVC_INTERNAL', 'A machine has an empty id.');
}

/** A machine that can be had: where, what, for how much. Plain data: it is stored with the replica. */
export interface Offer {
  readonly provider: string;
  readonly region: string;
  readonly zone: string | undefined;
  /** As the place calls it, or a description such as `2x CPU, 4 GB`. */
  readonly instanceType: string;
  readonly cpus: number;
  readonly memoryGb: number;
  /** `name` is the catalogue's canonical one; `memoryGb` of one accelerator, where it is known. */
  readonly accelerator: { readonly name: string; readonly count: number; readonly memoryGb?: number | undefined } | undefined;
  readonly spot: boolean;
  /** US dollars for the machine with the disk that was asked for; 0 for machines one owns. */
  readonly hourlyUsd: number;
  /** How many nodes of such machines fit there now, for plans; absent where that is not known or has no end. Others may take it meanwhile. */
  readonly room?: number | undefined;
}

/** Something a place has that does not do, and why: a clause such as `has 2 vCPUs, 4+ wanted`. */
export interface RejectedOffer {
  readonly offer: Offer;
  readonly why: string;
}

/** Offers, or why there are none (a sentence a user understands, naming what was asked for and what there is). */
export interface OfferList {
  readonly offers: readonly Offer[];
  readonly whyNone: string | undefined;
  /** There are none because the region or zone that was asked for is no part of the place, whatever else is asked for. */
  readonly isMisnamed?: boolean;
  /** What is to be known about the figures, such as that they are old: a sentence. */
  readonly notice?: string | undefined;
  /** With `explain` only. */
  readonly rejected?: readonly RejectedOffer[];
}

/** What is wanted of a new machine besides the offer. */
export interface MachineSpec {
  /** `svc-service`, `svc-service-key`, `svc-replica`, `svc-key` and the like; found again by `list`. */
  readonly tags: Readonly<Record<string, string>>;
  /** The user's own `labels`, put on the machine as they are. */
  readonly labels: Readonly<Record<string, string>>;
  /** Ports that programs on the machine serve. */
  readonly ports: readonly number[];
  /** Whether its program listens on `$SVC_REPLICA_PORT` whatever that is, so that it can be given another port where `ports` are taken. */
  readonly followsPort?: boolean;
  /** Who may connect to `ports`: addresses or CIDR ranges; empty means nobody beyond those who reach the machine over SSH. */
  readonly clients: readonly string[];
  readonly diskSizeGb: number;
  readonly diskTier: Resources['diskTier'];
  /** As the file has it: one for all regions, or by region. */
  readonly imageId: Resources['imageId'];
  /** How many nodes it is to have, which start together; more than 1 only where `capabilities.multiNode`. */
  readonly nodes: number;
  /** Volumes that exist in the place, by the folder where they are to be: `{'/data': 'models'}`. */
  readonly volumes: Readonly<Record<string, string>>;
  /** What the task's `config` says for places; each reads its own part. */
  readonly placeConfig: PlaceConfig;
  /** A replica runs a task; a controller may launch replicas, so it gets what the place has for that (an instance role). */
  readonly role: 'replica' | 'controller';
}

/**
 * `preempted` when the place took it, `deleted` when somebody removed it or its processes died. A place that announces that it will take a machine
 * says so with `notice`: `interruption` at about the given time (ms since the epoch), `rebalance` when it has become likely.
 */
export type MachineStatus =
  /**
   * `message`: why it does not run yet, in the place's own words, where that is worth telling. `detail`, also of what is gone: all that the place says of it,
   * where `message` is the short of it; for the log. `isQueued`: it waits for room, which its place ends by itself when that takes too long.
   */
  | { readonly state: 'booting'; readonly message?: string; readonly detail?: string; readonly isQueued?: boolean }
  /** `host`: name or address at which others reach its ports, where there is one. */
  | { readonly state: 'running'; readonly notice?: MachineNotice; readonly host?: string }
  | { readonly state: 'stopped' }
  /**
   * `message`: what the place itself says of it, a sentence. `isHopeless`: it never ran, and another one that is asked for in the same words would not
   * either, as with an image that does not exist. `mayPass`: what `message` tells is about the place at that time, such as a want of room, and nothing about
   * what was asked for.
   */
  | {
      readonly state: 'gone';
      readonly reason: 'preempted' | 'deleted' | 'unknown';
      readonly message?: string;
      readonly detail?: string;
      readonly isHopeless?: boolean;
      readonly mayPass?: boolean;
    };

/** What a place says beforehand about a machine it may take. */
export interface MachineNotice {
  readonly kind: 'interruption' | 'rebalance';
  readonly at: number | undefined;
}

/** A machine as found by `list`. */
export interface ListedMachine {
  readonly id: MachineId;
  readonly tags: Readonly<Record<string, string>>;
}

/** A place as `svc check` shows it. */
export interface ProviderCheck {
  readonly enabled: boolean;
  /** One line: what was found, or why it cannot be used. */
  readonly summary: string;
  /** What to do to enable or improve it; one sentence or command each. */
  readonly remedies: readonly string[];
  /** Further facts, label and value: isolation chosen and why, regions, GPUs. */
  readonly details: readonly (readonly [label: string, value: string])[];
  /**
   * Why machines of this place share their ports, so that a program has to listen on `$SVC_REPLICA_PORT`, as a clause; undefined where each
   * machine has all ports to itself.
   */
  readonly sharedPorts: string | undefined;
}
