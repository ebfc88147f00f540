import type { DiskKind } from '../../catalog/disk-prices.ts';
import type { BucketLocation } from '../../domain/bucket-location.ts';
import type { Resources } from '../../domain/task.ts';
import type {
  Capabilities,
  CheckOptions,
  ControllerTarget,
  MachineNotice,
  MachineSpec,
  MachineStatus,
  Offer,
  PortableCredentials,
  ProviderCheck,
} from '../provider.ts';
import type { CloudErrors } from './errors.ts';
import type { HomeIdentity } from './home-identity.ts';
import type { LabelAlphabet, Tags } from './tags.ts';

/**
 * The operations that a cloud with virtual machines must implement; `VmProvider` turns it into a provider. Methods
 * throw the cloud's own errors, which `errors` translates. Optional members are abilities that not every cloud has; a
 * cloud without the ability omits the member.
 */
export interface VmDriver<Image = unknown> {
  /**
   * As users write it in `infra:`. It also names the price table, the section of the configuration and the folder below
   * SVC_HOME.
   */
  readonly name: string;
  /** In messages: `AWS`. */
  readonly title: string;
  readonly abilities: VmAbilities;
  readonly traits: VmTraits;
  readonly errors: CloudErrors;
  /** Reports the account of the credentials and whether they work. Never throws for reasons that a user can fix. */
  account(options: CheckOptions): Promise<ProviderCheck>;
  /** Its section of the configuration, read at each call. */
  settings(): Promise<VmSettings>;
  /** The image for an offer; or why there is none, as a clause that follows the machine's name. Makes no call. */
  chooseImage(imageId: Resources['imageId'], offer: Pick<Offer, 'region' | 'instanceType' | 'accelerator'>): Image | string;
  /**
   * Requests a machine and returns when the cloud has accepted. With `once: 'cloud'` the same key yields the same
   * machine.
   */
  launch(order: VmLaunchOrder<Image>): Promise<Launched>;
  /**
   * All machines of a region that match the query, from all pages. The result may contain more, such as ended machines
   * or those of others. Throws if it cannot get all of them.
   */
  list(region: string, query: VmQuery, signal: AbortSignal | undefined): Promise<readonly VmMachine[]>;
  /**
   * Removes a machine with its disk and addresses; succeeds when it is already gone. `isJustMade`: the cloud may not
   * know it yet.
   */
  remove(ref: VmRef, options: { readonly isJustMade: boolean; readonly signal: AbortSignal | undefined }): Promise<void>;
  /**
   * Removes an owner's resources in a region beside machines (undefined: any owner of the home): firewall groups, keys,
   * disks. Throws SVC_PLACE_FAILED while an ending machine still uses one of them.
   */
  releaseShared(
    region: string,
    whose: { readonly home: string; readonly owner: string | undefined },
    signal: AbortSignal | undefined,
  ): Promise<void>;
  /** Removes an owner's resources outside regions, such as a role. Absent: there are none. */
  releaseGlobal?(owner: string, signal: AbortSignal | undefined): Promise<void>;
  /**
   * Waits for the cloud's decision about an accepted machine, for clouds that refuse in an operation. Throws the
   * refusal; the caller then removes the machine. Absent: `list` shows the refusal as the machine's status.
   */
  settle?(ref: VmRef, signal: AbortSignal | undefined): Promise<void>;
  /** Absent: machines cannot be stopped, only removed. */
  readonly power?: VmPower;
  /** Absent: the cloud sends no notices to the machine itself. */
  readonly noticeProbe?: NoticeProbe;
  /**
   * The cloud's credentials for a controller at the target; undefined when its machine has a role. Absent: controllers
   * at other providers cannot use the cloud.
   */
  credentials?(target: ControllerTarget, signal: AbortSignal | undefined): Promise<PortableCredentials | undefined>;
  /** The bucket from which a region's machines fetch files. Absent: files are copied to each machine. */
  bucketLocation?(region: string): Promise<BucketLocation | undefined>;
}

/** The abilities by which the planner filters; the driver's members determine the rest of `Capabilities`. */
type VmAbilities = Pick<Capabilities, 'spot' | 'customImages' | 'openPorts' | 'gpus' | 'diskTiers'>;

/** How the cloud differs from others, as data. */
export interface VmTraits {
  /** Global calls, and those for credentials, go to this region. */
  readonly mainRegion: string;
  /** The login user of the default images. */
  readonly usualUser: string;
  /** The form of an instance's id. */
  readonly instanceForm: RegExp;
  readonly labels: LabelAlphabet;
  /**
   * `cloud`: the same key yields the same machine, by a token of the request or by unique names. `lock`: it does not.
   * Launches of a home are then sequential, each after an intent on disk and a search for the key's machine.
   */
  readonly once: 'cloud' | 'lock';
  /** With `once: 'lock'`: the minimum time between two launches, ms. */
  readonly paceMs?: number;
  /** Scope of one `list`. `account`: all regions; it is called for `mainRegion` only. */
  readonly listCovers: 'region' | 'account';
}

/** Settings that every VM cloud may have, under their names in the configuration. */
export interface VmSettings {
  /** The only regions to use; undefined: all of the price table. */
  readonly regions: readonly string[] | undefined;
  /** Whether machines are reached at their private addresses. */
  readonly useInternalIps: boolean;
  /** Source ranges of this machine's SSH connections; undefined: detected. */
  readonly sshFrom: readonly string[] | undefined;
}

/** A machine's location and login user. */
export interface VmRef {
  readonly region: string;
  readonly instanceId: string;
  readonly user: string;
}

/** A machine that the cloud returned. */
export interface Launched {
  readonly instanceId: string;
  readonly user: string;
}

/**
 * Machines by their ids, with interruption notices; or those with all of the tags, in the form that the cloud stores.
 */
export type VmQuery =
  | { readonly ids: readonly string[] }
  /** `isLiving`: ended machines may be omitted. */
  | { readonly tags: Tags; readonly isLiving: boolean };

/** A machine as the cloud describes it. */
export interface VmMachine {
  readonly region: string;
  readonly instanceId: string;
  readonly status: VmStatus;
  readonly isSpot: boolean;
  readonly tags: Tags;
  readonly publicHost: string | undefined;
  readonly privateHost: string | undefined;
  readonly notice?: MachineNotice | undefined;
  /** The idempotency token of its request, where the cloud keeps it. */
  readonly requestToken?: string | undefined;
}

/** A status as far as the cloud knows it: only a login shows whether a running machine can be used. */
export type VmStatus = Exclude<MachineStatus, { state: 'running' }> | { readonly state: 'running' };

/** A machine to be launched. */
export interface VmLaunchOrder<Image> {
  readonly offer: Offer;
  readonly spec: MachineSpec;
  /** The idempotency key. */
  readonly key: string;
  /** The owner with which the machine is released. */
  readonly owner: string;
  readonly image: Image;
  readonly identity: HomeIdentity;
  readonly settings: VmSettings;
  /** The script for cloud-init: it installs the host key by which this home knows the machine. */
  readonly userData: string;
  readonly diskKind: DiskKind | undefined;
  /** Former machines of the key, which are gone. */
  readonly former: readonly VmMachine[];
  readonly signal: AbortSignal | undefined;
  /** The machine's tags, in the form that the cloud stores; `user` is the login user. */
  tags(user: string): Tags;
}

/**
 * Stops a machine so that it costs no more than its disk, and starts it again. Succeeds when there is nothing to do.
 */
export interface VmPower {
  stop(ref: VmRef, signal: AbortSignal | undefined): Promise<void>;
  start(ref: VmRef, signal: AbortSignal | undefined): Promise<void>;
}

/** How to poll a spot machine for notices, when the cloud notifies only the machine. */
export interface NoticeProbe {
  /** A shell script that prints the input of `parse`; nothing while there is no notice. */
  readonly script: string;
  readonly args: readonly string[];
  readonly everyMs: number;
  parse(output: string): MachineNotice | undefined;
}
