import type { BlockDeviceMapping, TagSpecification, VolumeType } from '@aws-sdk/client-ec2';
import { sha256Hex } from '../sigv4/signature.ts';
import { ApiError } from '../wire/api-error.ts';
import type { Ec2 } from './ec2.ts';
import type { ImageData } from './image-data.ts';
import type { InstanceRecord } from './records.ts';
import type { Ec2Region } from './region.ts';
import { tagsFor } from './tagging.ts';

/** A disk of a launch. */
export interface VolumePlan {
  readonly device: string;
  readonly sizeGb: number;
  readonly type: VolumeType;
  readonly iops: number | undefined;
  readonly throughput: number | undefined;
  readonly snapshotId: string | undefined;
  readonly encrypted: boolean;
  readonly deleteOnTermination: boolean;
}

interface VolumeLimits {
  readonly leastGb: number;
  readonly mostGb: number;
  /** Allowed IOPS; undefined for types with fixed IOPS. */
  readonly iops?: readonly [least: number, most: number];
  readonly throughput?: readonly [least: number, most: number];
}

/** https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html */
const volumeTypes: Readonly<Record<VolumeType, VolumeLimits>> = {
  gp2: { leastGb: 1, mostGb: 16_384 },
  gp3: { leastGb: 1, mostGb: 65_536, iops: [3_000, 80_000], throughput: [125, 2_000] },
  io1: { leastGb: 4, mostGb: 16_384, iops: [100, 64_000] },
  io2: { leastGb: 4, mostGb: 65_536, iops: [100, 256_000] },
  st1: { leastGb: 125, mostGb: 16_384 },
  sc1: { leastGb: 125, mostGb: 16_384 },
  standard: { leastGb: 1, mostGb: 1_024 },
};

function isVolumeType(text: string): text is VolumeType {
  return text in volumeTypes;
}

/** Returns the snapshot of an image's root disk. */
export function rootSnapshot(image: ImageData): string {
  return `snap-${sha256Hex(image.name).slice(0, 17)}`;
}

/** Returns the disks of a launch, the root disk first. */
export function planVolumes(image: ImageData, mappings: readonly BlockDeviceMapping[] | undefined): readonly VolumePlan[] {
  const root = (mappings ?? []).find(({ DeviceName }) => DeviceName === image.rootDevice);
  const others = (mappings ?? []).filter(
    (mapping) => mapping !== root && mapping.NoDevice === undefined && mapping.VirtualName === undefined,
  );
  return [planVolume(image, root ?? { DeviceName: image.rootDevice }, true), ...others.map((mapping) => planVolume(image, mapping, false))];
}

function refused(message: string): ApiError {
  return new ApiError('InvalidBlockDeviceMapping', message, 400);
}

function planVolume(image: ImageData, { DeviceName: device = '', Ebs: ebs = {} }: BlockDeviceMapping, isRoot: boolean): VolumePlan {
  const name: string = ebs.VolumeType ?? (isRoot ? 'gp3' : 'gp2');
  if (!isVolumeType(name)) throw new ApiError('InvalidParameterValue', `Invalid volume type: ${name}`, 400);
  const limits = volumeTypes[name];
  const sizeGb = ebs.VolumeSize ?? (isRoot ? image.rootGb : 0);
  if (isRoot && sizeGb < image.rootGb) {
    throw refused(`Volume of size ${sizeGb}GB is smaller than snapshot '${rootSnapshot(image)}', expect size >= ${image.rootGb}GB`);
  }
  if (sizeGb < limits.leastGb || sizeGb > limits.mostGb) {
    throw new ApiError(
      'InvalidParameterValue',
      `Volume of ${sizeGb}GiB is not between ${limits.leastGb} and ${limits.mostGb} GiB, as ${name} has to be.`,
      400,
    );
  }
  checkRate(name, 'iops', ebs.Iops, limits.iops);
  checkRate(name, 'throughput', ebs.Throughput, limits.throughput);
  if (name.startsWith('io') && ebs.Iops === undefined)
    throw new ApiError('MissingParameter', `The parameter iops must be specified for ${name} volumes.`, 400);
  return {
    device,
    sizeGb,
    type: name,
    iops: ebs.Iops ?? limits.iops?.[0],
    throughput: ebs.Throughput ?? limits.throughput?.[0],
    snapshotId: isRoot ? rootSnapshot(image) : ebs.SnapshotId,
    encrypted: ebs.Encrypted ?? false,
    deleteOnTermination: ebs.DeleteOnTermination ?? isRoot,
  };
}

function checkRate(type: string, what: string, rate: number | undefined, range: readonly [number, number] | undefined): void {
  if (rate === undefined) return;
  if (range === undefined)
    throw new ApiError('InvalidParameterCombination', `The parameter ${what} is not supported for ${type} volumes.`, 400);
  if (rate < range[0] || rate > range[1])
    throw new ApiError('InvalidParameterValue', `Volume ${what} of ${rate} is not supported; it must be ${range[0]} to ${range[1]}.`, 400);
}

/** Creates the disks of an instance. */
export function makeVolumes(
  ec2: Ec2,
  region: Ec2Region,
  instance: InstanceRecord,
  plans: readonly VolumePlan[],
  specifications: readonly TagSpecification[] | undefined,
): void {
  for (const { device, deleteOnTermination, ...plan } of plans) {
    const id = ec2.id('vol');
    const tags = tagsFor(ec2, 'volume', specifications);
    const attachment = { instanceId: instance.id, device, deleteOnTermination };
    region.volumes.set(id, { id, visibleAt: instance.visibleAt, tags, zone: instance.zone, createdAt: ec2.now, attachment, ...plan });
    instance.volumeIds.push(id);
  }
}
