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
 * throw the cloud's own errors, which `errors` translates. A cloud omits the optional members that it cannot do.
 */
export interface VmDriver<Image = unknown> {
  /** As in `infra:`. Also names the price table, the configuration's section and the folder below SVC_HOME. */
  readonly name: string;
  /** In messages: `AWS`. */
  readonly title: string;
  readonly abilities: VmAbilities;
  readonly traits: VmTraits;
  readonly errors: CloudErrors;
  /** Reports the account of the credentials and whether they work. Never throws for reasons that a user can fix. */
  account(options: CheckOptions): Promise<ProviderCheck>;
  /** The configuration, read at each call. */
  settings(): Promise<VmSettings>;
  /** The image for an offer, or why there is none: a clause that follows the machine's name. Makes no call. */
  chooseImage(imageId: Resources['imageId'], offer: Pick<Offer, 'region' | 'instanceType' | 'accelerator'>): Image | string;
  /** Returns when the cloud has accepted the machine. With `once: 'cloud'` the same key yields the same machine. */
  launch(order: VmLaunchOrder<Image>): Promise<Launched>;
  /** All matching machines of a region; may include ended machines and those of others. Throws if it cannot get all. */
  list(region: string, query: VmQuery, signal: AbortSignal | undefined): Promise<readonly VmMachine[]>;
  /** Also removes its disk and addresses. Succeeds when it is gone. `isJustMade`: the cloud may not know it yet. */
  remove(ref: VmRef, options: { readonly isJustMade: boolean; readonly signal: AbortSignal | undefined }): Promise<void>;
  /**
   * Removes an owner's firewall groups, keys and disks in a region (undefined: any owner of the home). Throws
   * SVC_PLACE_FAILED while an ending machine still uses one of them.
   */
  releaseShared(
    region: string,
    whose: { readonly home: string; readonly owner: string | undefined },
    signal: AbortSignal | undefined,
  ): Promise<void>;
  /**
   * Opens SSH on an owner's machines in a region to this machine's present address, and closes it to the former one.
   * Returns whether it was closed to the present one. Absent: nothing follows a changed address.
   */
  reopenSsh?(region: string, whose: { readonly home: string; readonly owner: string }): Promise<boolean>;
  /** Removes an owner's resources outside regions, such as a role. */
  releaseGlobal?(owner: string, signal: AbortSignal | undefined): Promise<void>;
  /**
   * Waits for the cloud's decision about an accepted machine and throws its refusal; the caller then removes the
   * machine. Absent: `list` shows the refusal as the machine's status.
   */
  settle?(ref: VmRef, signal: AbortSignal | undefined): Promise<void>;
  /** Absent: machines cannot be stopped, only removed. */
  readonly power?: VmPower;
  /** Absent: the cloud sends no notices to the machine itself. */
  readonly noticeProbe?: NoticeProbe;
  /** For a controller at the target; undefined: its machine has a role. Absent: only controllers at the cloud work. */
  credentials?(target: ControllerTarget, signal: AbortSignal | undefined): Promise<PortableCredentials | undefined>;
  /** The bucket from which a region's machines fetch files. Absent: files are copied to each machine. */
  bucketLocation?(region: string): Promise<BucketLocation | undefined>;
}

/** The driver's members determine the rest of `Capabilities`. */
type VmAbilities = Pick<Capabilities, 'spot' | 'customImages' | 'openPorts' | 'gpus' | 'diskTiers'>;

/** How the cloud differs from others. */
export interface VmTraits {
  /** For global calls and those for credentials. */
  readonly mainRegion: string;
  /** Login user of the default images. */
  readonly usualUser: string;
  readonly instanceForm: RegExp;
  readonly labels: LabelAlphabet;
  /** `cloud`: the cloud makes launches idempotent. `lock`: svc does, by sequential launches with intents on disk. */
  readonly once: 'cloud' | 'lock';
  /** With `once: 'lock'`: minimum between two launches, ms. */
  readonly paceMs?: number;
  /** Scope of one `list`. `account`: all regions; it is called for `mainRegion` only. */
  readonly listCovers: 'region' | 'account';
}

/** Settings of every VM cloud, under their names in the configuration. */
export interface VmSettings {
  /** Regions to use; undefined: all of the price table. */
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

/** A machine that the cloud accepted. */
export interface Launched {
  readonly instanceId: string;
  readonly user: string;
}

/** `ids`: includes interruption notices. `tags`: machines with all of them, in the form that the cloud stores. */
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
  /** Idempotency token of its launch, where the cloud keeps it. */
  readonly requestToken?: string | undefined;
}

/** As far as the cloud knows: only a login shows whether a running machine can be used. */
export type VmStatus = Exclude<MachineStatus, { state: 'running' }> | { readonly state: 'running' };

/** A machine to be launched. */
export interface VmLaunchOrder<Image> {
  readonly offer: Offer;
  readonly spec: MachineSpec;
  readonly key: string;
  /** The owner with which the machine is released. */
  readonly owner: string;
  readonly image: Image;
  readonly identity: HomeIdentity;
  readonly settings: VmSettings;
  /** The cloud-init script. It installs the host key by which this home recognizes the machine. */
  readonly userData: string;
  readonly diskKind: DiskKind | undefined;
  /** Machines of the key that have ended. */
  readonly former: readonly VmMachine[];
  readonly signal: AbortSignal | undefined;
  /** The machine's tags, in the form that the cloud stores. */
  tags(user: string): Tags;
}

/** A stopped machine costs no more than its disk. Both succeed when there is nothing to do. */
export interface VmPower {
  stop(ref: VmRef, signal: AbortSignal | undefined): Promise<void>;
  start(ref: VmRef, signal: AbortSignal | undefined): Promise<void>;
}

/** Polls a spot machine for notices, for a cloud that notifies only the machine. */
export interface NoticeProbe {
  /** A shell script that prints the input of `parse`, or nothing. */
  readonly script: string;
  readonly args: readonly string[];
  readonly everyMs: number;
  parse(output: string): MachineNotice | undefined;
}
