import type { InstanceMetadataOptionsResponse, StateReason, VolumeType } from '@aws-sdk/client-ec2';
import type { InstanceTypeData } from './instance-type-data.ts';
import type { ImageData } from './image-data.ts';

/** A tag and when reads begin to see it, ms since the epoch. */
export interface TagRecord {
  readonly value: string;
  readonly visibleAt: number;
}

/** Fields of every resource. */
export interface Resource {
  readonly id: string;
  /** When reads begin to see it, ms since the epoch. */
  readonly visibleAt: number;
  readonly tags: Map<string, TagRecord>;
}

/** The states of an instance, with AWS's numbers for them. */
export const stateCodes = { pending: 0, running: 16, 'shutting-down': 32, terminated: 48, stopping: 64, stopped: 80 } as const;
/** A state of an instance. */
export type InstanceState = keyof typeof stateCodes;

/** A machine. */
export interface InstanceRecord extends Omit<Resource, 'visibleAt'> {
  visibleAt: number;
  readonly reservationId: string;
  readonly region: string;
  readonly zone: string;
  readonly type: InstanceTypeData;
  readonly image: ImageData;
  readonly imageId: string;
  readonly keyName: string | undefined;
  readonly groupIds: readonly string[];
  readonly subnetId: string;
  readonly networkInterfaceId: string;
  privateIp: string;
  publicIp: string | undefined;
  readonly wantsPublicIp: boolean;
  state: InstanceState;
  stateReason: StateReason | undefined;
  stateTransitionReason: string;
  launchedAt: number;
  terminatedAt: number | undefined;
  readonly clientToken: string | undefined;
  readonly userData: string | undefined;
  readonly spotRequestId: string | undefined;
  readonly instanceProfileArn: string | undefined;
  readonly metadataOptions: InstanceMetadataOptionsResponse;
  readonly rootDevice: string;
  readonly shutdownBehavior: 'stop' | 'terminate';
  readonly volumeIds: string[];
  readonly launchIndex: number;
  /** Counts launches and starts, so that callbacks of an earlier run can detect that they are stale. */
  epoch: number;
  rebalanceAt: number | undefined;
  interruptionAt: number | undefined;
}

/** A disk. */
export interface VolumeRecord extends Resource {
  readonly zone: string;
  readonly sizeGb: number;
  readonly type: VolumeType;
  readonly iops: number | undefined;
  readonly throughput: number | undefined;
  readonly snapshotId: string | undefined;
  readonly encrypted: boolean;
  readonly createdAt: number;
  attachment: { readonly instanceId: string; readonly device: string; readonly deleteOnTermination: boolean } | undefined;
}

/** One rule of a group. */
export interface RuleRecord extends Resource {
  readonly protocol: string;
  readonly fromPort: number;
  readonly toPort: number;
  /** A CIDR range or the id of a group. */
  readonly peer: string;
  readonly description: string | undefined;
  readonly egress: boolean;
}

/** A security group. */
export interface GroupRecord extends Resource {
  readonly name: string;
  readonly description: string;
  readonly vpcId: string;
  readonly rules: Map<string, RuleRecord>;
}

/** The public half of a key pair. */
export interface KeyRecord extends Resource {
  readonly name: string;
  readonly type: 'rsa' | 'ed25519';
  readonly publicKey: string;
  readonly fingerprint: string;
  readonly createdAt: number;
}

/** A request for a spot machine. */
export interface SpotRequestRecord extends Resource {
  readonly zone: string;
  readonly instanceId: string;
  readonly type: 'one-time' | 'persistent';
  readonly maxPrice: string;
  readonly interruption: 'terminate' | 'stop' | 'hibernate';
  readonly createdAt: number;
  state: 'open' | 'active' | 'closed' | 'cancelled' | 'failed' | 'disabled';
  statusCode: string;
  statusMessage: string;
  statusAt: number;
}

/** A subnet, in one zone. */
export interface SubnetRecord extends Resource {
  readonly zone: string;
  readonly vpcId: string;
  readonly cidr: string;
  readonly isDefault: boolean;
  /** Whether machines get a public address by default. A person may change it. */
  publicIps: boolean;
  /** A subnet without IPv4. */
  ipv6Only: boolean;
}

/** A network. */
export interface VpcRecord extends Resource {
  readonly cidr: string;
  readonly isDefault: boolean;
}
