import type {
  DescribeAvailabilityZonesRequest,
  DescribeAvailabilityZonesResult,
  DescribeImagesRequest,
  DescribeImagesResult,
  DescribeInstanceTypeOfferingsRequest,
  DescribeInstanceTypeOfferingsResult,
  DescribeInstanceTypesRequest,
  DescribeInstanceTypesResult,
  DescribeRegionsRequest,
  DescribeRegionsResult,
  Image,
  InstanceTypeInfo,
} from '@aws-sdk/client-ec2';
import type { Caller } from '../core/action.ts';
import { ApiError } from '../wire/api-error.ts';
import { rootSnapshot } from './block-devices.ts';
import type { Ec2 } from './ec2.ts';
import { filtered, type FilterFields } from './filters.ts';
import { imageData, imageId, type ImageData } from './image-data.ts';
import type { InstanceTypeData } from './instance-type-data.ts';
import { page } from './paging.ts';
import { zoneId } from './region-data.ts';

/** These resources have no tags. */
const noTags: ReadonlyMap<string, never> = new Map<string, never>();

/** Enabled regions, or all regions. */
export function describeRegions(ec2: Ec2, input: DescribeRegionsRequest, disabled: ReadonlySet<string>): DescribeRegionsResult {
  const { RegionNames: names, AllRegions: all = false } = input;
  const known = [...ec2.regions.values()].map((region) => ({
    id: region.name,
    tags: new Map(noTags),
    status: status(region.optIn, disabled.has(region.name)),
  }));
  const missing = names?.find((name) => !known.some(({ id }) => id === name));
  if (missing !== undefined) throw new ApiError('InvalidParameterValue', `Invalid region: [${missing}]`, 400);
  const chosen = known.filter(({ id, status: its }) => (names === undefined || names.includes(id)) && (all || its !== 'not-opted-in'));
  const found = filtered(
    chosen,
    input.Filters,
    { 'region-name': (one) => one.id, 'opt-in-status': (one) => one.status, endpoint: (one) => `ec2.${one.id}.amazonaws.com` },
    ec2.now,
  );
  return { Regions: found.map(({ id, status: its }) => ({ RegionName: id, Endpoint: `ec2.${id}.amazonaws.com`, OptInStatus: its })) };
}

function status(optIn: boolean, disabled: boolean): 'not-opted-in' | 'opted-in' | 'opt-in-not-required' {
  if (disabled) return 'not-opted-in';
  return optIn ? 'opted-in' : 'opt-in-not-required';
}

/** The zones of the called region. */
export function describeAvailabilityZones(
  ec2: Ec2,
  input: DescribeAvailabilityZonesRequest,
  { region: name }: Caller,
): DescribeAvailabilityZonesResult {
  const region = ec2.region(name);
  const { ZoneNames: names, AllAvailabilityZones: all } = input;
  // The emulator has no local zones, so every zone is opted in.
  void all;
  const missing = names?.find((zone) => !region.zones.includes(zone));
  if (missing !== undefined) throw new ApiError('InvalidParameterValue', `Invalid availability zone: [${missing}]`, 400);
  const zones = region.zones.filter((zone) => names === undefined || names.includes(zone)).map((id) => ({ id, tags: new Map(noTags) }));
  const fields: FilterFields<(typeof zones)[number]> = {
    'zone-name': ({ id }) => id,
    'region-name': () => name,
    'zone-id': ({ id }) => zoneId(id),
    'zone-type': () => 'availability-zone',
    'opt-in-status': () => 'opt-in-not-required',
    state: () => 'available',
  };
  return {
    AvailabilityZones: filtered(zones, input.Filters, fields, ec2.now).map(({ id }) => ({
      ZoneName: id,
      ZoneId: zoneId(id),
      RegionName: name,
      State: 'available',
      ZoneType: 'availability-zone',
      OptInStatus: 'opt-in-not-required',
      GroupName: `${name}-zg-1`,
      NetworkBorderGroup: name,
    })),
  };
}

/** Public images by id, owner or filter. */
export function describeImages(ec2: Ec2, input: DescribeImagesRequest, { region: name }: Caller): DescribeImagesResult {
  const { ImageIds: ids, Owners: owners } = input;
  void input.IncludeDeprecated;
  const all = imageData.map((image) => ({ id: imageId(image, name), image, tags: new Map(noTags) }));
  const missing = ids?.find((id) => !all.some((one) => one.id === id));
  if (missing !== undefined) throw new ApiError('InvalidAMIID.NotFound', `The image id '[${missing}]' does not exist`, 400);
  const owned = (image: ImageData): boolean =>
    owners === undefined || owners.some((owner) => owner === image.ownerId || owner === image.ownerAlias);
  const chosen = all.filter(({ id, image }) => (ids === undefined || ids.includes(id)) && owned(image));
  const fields: FilterFields<(typeof all)[number]> = {
    'image-id': ({ id }) => id,
    name: ({ image }) => image.name,
    description: ({ image }) => image.description,
    architecture: ({ image }) => image.architecture,
    'owner-id': ({ image }) => image.ownerId,
    'owner-alias': ({ image }) => image.ownerAlias,
    'is-public': () => 'true',
    state: () => 'available',
    'root-device-type': () => 'ebs',
    'virtualization-type': () => 'hvm',
    'image-type': () => 'machine',
  };
  const { items, ...rest } = page(
    filtered(chosen, input.Filters, fields, ec2.now),
    input,
    { least: 1, most: 1_000 },
    ec2.emulation.conduct.pageLimit,
  );
  return { Images: items.map(({ id, image }) => showImage(id, image)), ...rest };
}

function showImage(id: string, image: ImageData): Image {
  return {
    ImageId: id,
    Name: image.name,
    Description: image.description,
    Architecture: image.architecture,
    OwnerId: image.ownerId,
    ...(image.ownerAlias === undefined ? {} : { ImageOwnerAlias: image.ownerAlias }),
    ImageLocation: `${image.ownerAlias ?? image.ownerId}/${image.name}`,
    CreationDate: '2026-03-01T00:00:00.000Z',
    Public: true,
    State: 'available',
    ImageType: 'machine',
    RootDeviceType: 'ebs',
    RootDeviceName: image.rootDevice,
    VirtualizationType: 'hvm',
    Hypervisor: 'xen',
    EnaSupport: true,
    PlatformDetails: 'Linux/UNIX',
    BlockDeviceMappings: [
      {
        DeviceName: image.rootDevice,
        Ebs: { SnapshotId: rootSnapshot(image), VolumeSize: image.rootGb, VolumeType: 'gp3', DeleteOnTermination: true, Encrypted: false },
      },
    ],
  };
}

/** Properties of the types that are offered in any zone of the region. */
export function describeInstanceTypes(
  ec2: Ec2,
  input: DescribeInstanceTypesRequest,
  { region: name }: Caller,
): DescribeInstanceTypesResult {
  const { zones } = ec2.region(name);
  const requested: readonly string[] | undefined = input.InstanceTypes;
  const all = [...ec2.types.values()]
    .filter((type) => zones.some((zone) => ec2.supply.isOffered(type.name, zone)))
    .map((type) => ({ id: type.name, type, tags: new Map(noTags) }));
  const missing = requested?.filter((one) => !all.some(({ id }) => id === one)) ?? [];
  if (missing.length > 0) {
    throw new ApiError('InvalidInstanceType', `The following supplied instance types do not exist: [${missing.join(', ')}]`, 400);
  }
  const fields: FilterFields<(typeof all)[number]> = {
    'instance-type': ({ id }) => id,
    'vcpu-info.default-vcpus': ({ type }) => String(type.vcpus),
    'memory-info.size-in-mib': ({ type }) => String(type.memoryGb * 1_024),
    'processor-info.supported-architecture': ({ type }) => type.architecture,
    'current-generation': () => 'true',
    'supported-usage-class': () => ['on-demand', 'spot'],
  };
  const chosen = filtered(requested === undefined ? all : all.filter(({ id }) => requested.includes(id)), input.Filters, fields, ec2.now);
  const { items, ...rest } = page(chosen, input, { least: 5, most: 100, usual: 100 }, ec2.emulation.conduct.pageLimit);
  return { InstanceTypes: items.map(({ type }) => showType(type)), ...rest };
}

function showType(type: InstanceTypeData): InstanceTypeInfo {
  const { gpu } = type;
  const gpus = gpu && {
    Gpus: [{ Name: gpu.name, Manufacturer: gpu.manufacturer, Count: gpu.count, MemoryInfo: { SizeInMiB: gpu.memoryGb * 1_024 } }],
    TotalGpuMemoryInMiB: gpu.count * gpu.memoryGb * 1_024,
  };
  return {
    InstanceType: type.name,
    CurrentGeneration: true,
    BareMetal: type.name.endsWith('.metal'),
    SupportedUsageClasses: ['on-demand', 'spot'],
    SupportedRootDeviceTypes: ['ebs'],
    SupportedVirtualizationTypes: ['hvm'],
    ProcessorInfo: { SupportedArchitectures: [type.architecture] },
    VCpuInfo: { DefaultVCpus: type.vcpus, DefaultCores: Math.max(1, type.vcpus / 2), DefaultThreadsPerCore: 2 },
    MemoryInfo: { SizeInMiB: type.memoryGb * 1_024 },
    ...(gpus === undefined ? {} : { GpuInfo: gpus }),
    BurstablePerformanceSupported: type.name.startsWith('t'),
    HibernationSupported: false,
  };
}

/** Lists the scopes that offer each type: the region, or its zones. */
export function describeInstanceTypeOfferings(
  ec2: Ec2,
  input: DescribeInstanceTypeOfferingsRequest,
  { region: name }: Caller,
): DescribeInstanceTypeOfferingsResult {
  const kind = input.LocationType ?? 'region';
  const { zones } = ec2.region(name);
  const inZones = zones.flatMap((zone) =>
    [...ec2.types.values()].filter(({ name: type }) => ec2.supply.isOffered(type, zone)).map((type) => ({ type: type.name, zone })),
  );
  const locationOf = (zone: string): string => (kind === 'region' ? name : kind === 'availability-zone-id' ? zoneId(zone) : zone);
  const offers = new Map(
    inZones.map(({ type, zone }) => [
      `${locationOf(zone)}/${type}`,
      { id: `${locationOf(zone)}/${type}`, type, location: locationOf(zone), tags: new Map(noTags) },
    ]),
  );
  const fields: FilterFields<{ readonly type: string; readonly location: string; readonly tags: Map<string, never> }> = {
    'instance-type': ({ type }) => type,
    location: ({ location }) => location,
  };
  const { items, ...rest } = page(
    filtered([...offers.values()], input.Filters, fields, ec2.now),
    input,
    { least: 5, most: 1_000, usual: 1_000 },
    ec2.emulation.conduct.pageLimit,
  );
  return {
    InstanceTypeOfferings: items.map(({ type, location }) => ({
      InstanceType: type,
      LocationType: kind,
      Location: location,
    })),
    ...rest,
  };
}
