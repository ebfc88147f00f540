import type {
  DescribeNetworkInterfacesRequest,
  DescribeNetworkInterfacesResult,
  DescribeSubnetsRequest,
  DescribeSubnetsResult,
  DescribeVpcsRequest,
  DescribeVpcsResult,
  Filter,
} from '@aws-sdk/client-ec2';
import type { Caller } from '../core/action.ts';
import { ApiError } from '../wire/api-error.ts';
import type { Ec2 } from './ec2.ts';
import { filtered, type FilterFields } from './filters.ts';
import { page } from './paging.ts';
import { zoneId } from './region-data.ts';
import type { InstanceRecord, SubnetRecord, VpcRecord } from './records.ts';
import { shownTags } from './tagging.ts';

function byId<Item>(records: ReadonlyMap<string, Item>, ids: readonly string[] | undefined, code: string, what: string): readonly Item[] {
  if (ids === undefined) return [...records.values()];
  return ids.map((id) => {
    const record = records.get(id);
    if (record === undefined) throw new ApiError(code, `The ${what} ID '${id}' does not exist`, 400);
    return record;
  });
}

const vpcFields: FilterFields<VpcRecord> = {
  'vpc-id': (one) => one.id,
  cidr: (one) => one.cidr,
  'is-default': (one) => String(one.isDefault),
  isDefault: (one) => String(one.isDefault),
  state: () => 'available',
};

/** Networks by id or filter. */
export function describeVpcs(ec2: Ec2, input: DescribeVpcsRequest, { region, key }: Caller): DescribeVpcsResult {
  const found = filtered(byId(ec2.region(region).vpcs, input.VpcIds, 'InvalidVpcID.NotFound', 'vpc'), input.Filters, vpcFields, ec2.now);
  const { items, ...rest } = page(found, input, { least: 5, most: 1_000 }, ec2.emulation.conduct.pageLimit);
  const vpcs = items.map((vpc) => ({
    VpcId: vpc.id,
    CidrBlock: vpc.cidr,
    IsDefault: vpc.isDefault,
    State: 'available' as const,
    InstanceTenancy: 'default' as const,
    OwnerId: key.account,
    DhcpOptionsId: 'dopt-00000001',
    Tags: shownTags(vpc, ec2.now),
  }));
  return { Vpcs: vpcs, ...rest };
}

const subnetFields: FilterFields<SubnetRecord> = {
  'subnet-id': (one) => one.id,
  'vpc-id': (one) => one.vpcId,
  'availability-zone': (one) => one.zone,
  'availability-zone-id': (one) => zoneId(one.zone),
  'default-for-az': (one) => String(one.isDefault),
  'map-public-ip-on-launch': (one) => String(one.publicIps),
  state: () => 'available',
};

/** Subnets by id or filter. */
export function describeSubnets(ec2: Ec2, input: DescribeSubnetsRequest, { region, key }: Caller): DescribeSubnetsResult {
  const found = filtered(
    byId(ec2.region(region).subnets, input.SubnetIds, 'InvalidSubnetID.NotFound', 'subnet'),
    input.Filters,
    subnetFields,
    ec2.now,
  );
  const { items, ...rest } = page(found, input, { least: 5, most: 1_000 }, ec2.emulation.conduct.pageLimit);
  const subnets = items.map((subnet) => ({
    SubnetId: subnet.id,
    VpcId: subnet.vpcId,
    CidrBlock: subnet.cidr,
    AvailabilityZone: subnet.zone,
    AvailabilityZoneId: zoneId(subnet.zone),
    AvailableIpAddressCount: subnet.ipv6Only ? 0 : 4_091,
    Ipv6Native: subnet.ipv6Only,
    DefaultForAz: subnet.isDefault,
    MapPublicIpOnLaunch: subnet.publicIps,
    State: 'available' as const,
    OwnerId: key.account,
    Tags: shownTags(subnet, ec2.now),
  }));
  return { Subnets: subnets, ...rest };
}

/** The interfaces of instances that are not yet terminated; there are no others. */
export function describeNetworkInterfaces(
  ec2: Ec2,
  input: DescribeNetworkInterfacesRequest,
  { region: name, key }: Caller,
): DescribeNetworkInterfacesResult {
  const region = ec2.region(name);
  const all = [...region.instances.values()].filter((one) => one.state !== 'terminated' && ec2.isVisible(one));
  const ids = input.NetworkInterfaceIds;
  const missing = ids?.find((id) => !all.some((one) => one.networkInterfaceId === id));
  if (missing !== undefined)
    throw new ApiError('InvalidNetworkInterfaceID.NotFound', `The networkInterface ID '${missing}' does not exist`, 400);
  const fields: FilterFields<InstanceRecord> = {
    'network-interface-id': (one) => one.networkInterfaceId,
    'attachment.instance-id': (one) => one.id,
    'group-id': (one) => one.groupIds,
    'subnet-id': (one) => one.subnetId,
    'vpc-id': (one) => region.subnets.get(one.subnetId)?.vpcId,
    status: () => 'in-use',
  };
  // Interfaces have separate tags; the interfaces of a launch have none.
  const chosen = filtered(all, input.Filters?.map(withoutTags), fields, ec2.now).filter(
    (one) => ids === undefined || ids.includes(one.networkInterfaceId),
  );
  const { items, ...rest } = page(chosen, input, { least: 5, most: 1_000 }, ec2.emulation.conduct.pageLimit);
  const interfaces = items.map((one) => ({
    NetworkInterfaceId: one.networkInterfaceId,
    Status: 'in-use' as const,
    AvailabilityZone: one.zone,
    SubnetId: one.subnetId,
    VpcId: region.subnets.get(one.subnetId)?.vpcId ?? '',
    OwnerId: key.account,
    PrivateIpAddress: one.privateIp,
    InterfaceType: 'interface' as const,
    Groups: one.groupIds.map((id) => ({ GroupId: id, GroupName: region.groups.get(id)?.name ?? '' })),
    Attachment: {
      InstanceId: one.id,
      DeviceIndex: 0,
      DeleteOnTermination: true,
      Status: 'attached' as const,
      InstanceOwnerId: key.account,
    },
    TagSet: [],
  }));
  return { NetworkInterfaces: interfaces, ...rest };
}

function withoutTags(filter: Filter): Filter {
  if (filter.Name?.startsWith('tag') !== true) return filter;
  throw new ApiError('InvalidParameterValue', `The emulator has no tags on interfaces, so it has no filter '${filter.Name}'`, 400);
}
