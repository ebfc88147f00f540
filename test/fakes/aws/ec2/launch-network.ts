import type { InstanceNetworkInterfaceSpecification, RunInstancesRequest } from '@aws-sdk/client-ec2';
import { ApiError } from '../wire/api-error.ts';
import type { Ec2 } from './ec2.ts';
import type { Ec2Region } from './region.ts';
import type { GroupRecord, SubnetRecord } from './records.ts';

/** The allowed subnets of a launch, and its security groups. */
export interface NetworkPlan {
  /** Any of these is acceptable; never empty. */
  readonly subnets: readonly SubnetRecord[];
  readonly groupIds: readonly string[];
  /** Whether the machines get a public address; undefined means the subnet's default. */
  readonly publicIp: boolean | undefined;
}

/** Reads placement, subnet, interfaces and groups of a launch, and refuses contradictions. */
export function planNetwork(ec2: Ec2, region: Ec2Region, input: RunInstancesRequest): NetworkPlan {
  const cards = input.NetworkInterfaces ?? [];
  const [card, second] = cards;
  const groupIds = input.SecurityGroupIds;
  const groupNames = input.SecurityGroups;
  const subnetId = input.SubnetId;
  checkCards(cards);
  if (second !== undefined) ec2.emulation.problem('RunInstances was given several network interfaces, of which the emulator knows one');
  if (card !== undefined && subnetId !== undefined) throw besideCards('subnet ID');
  if (card !== undefined && (groupIds !== undefined || groupNames !== undefined)) throw besideCards('security groups');
  const zone = checkedZone(region, input.Placement?.AvailabilityZone);
  const subnets = subnetsFor(region, card?.SubnetId ?? subnetId, zone);
  const vpcId = subnets[0]?.vpcId ?? '';
  if (card?.AssociatePublicIpAddress === true && subnets.some(({ ipv6Only }) => ipv6Only))
    ec2.emulation.problem('RunInstances asked for a public IPv4 address in an IPv6-only subnet');
  const groups = groupsFor(ec2, region, vpcId, card?.Groups ?? groupIds, groupNames);
  return { subnets, groupIds: groups.map(({ id }) => id), publicIp: card?.AssociatePublicIpAddress };
}

const invalidCombination = (message: string): ApiError => new ApiError('InvalidParameterCombination', message, 400);

function besideCards(what: string): ApiError {
  return invalidCombination(`Network interfaces and an instance-level ${what} may not be specified on the same request`);
}

/** https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceNetworkInterfaceSpecification.html */
function checkCards(cards: readonly InstanceNetworkInterfaceSpecification[]): void {
  for (const { DeviceIndex: index, AssociatePublicIpAddress: isPublic } of cards) {
    if (index === undefined) throw new ApiError('InvalidParameterValue', 'Each network interface requires a device index.', 400);
    if (isPublic === undefined) continue;
    if (cards.length > 1)
      throw invalidCombination(
        'The associatePublicIPAddress parameter cannot be specified when launching with multiple network interfaces.',
      );
    if (index !== 0)
      throw invalidCombination(
        'The associatePublicIPAddress parameter can only be specified for the network interface with DeviceIndex 0.',
      );
  }
}

function checkedZone(region: Ec2Region, zone: string | undefined): string | undefined {
  if (zone === undefined || zone === '' || region.zones.includes(zone)) return zone === '' ? undefined : zone;
  throw new ApiError('InvalidParameterValue', `Invalid availability zone: [${zone}]`, 400);
}

function subnetsFor(region: Ec2Region, subnetId: string | undefined, zone: string | undefined): readonly SubnetRecord[] {
  if (subnetId === undefined) {
    if (region.defaultVpc === undefined) {
      throw new ApiError(
        'VPCIdNotSpecified',
        'No default VPC for this user. GroupName is only supported for EC2-Classic and default VPC.',
        400,
      );
    }
    const usable = [...region.subnets.values()].filter((subnet) => subnet.isDefault && (zone === undefined || subnet.zone === zone));
    if (usable.length > 0) return usable;
    const scope =
      zone === undefined
        ? `the default VPC '${region.defaultVpc.id}'`
        : `the default VPC '${region.defaultVpc.id}' in the availability zone '${zone}'`;
    throw new ApiError('MissingInput', `No subnets found for ${scope}. Please specify a subnet.`, 400);
  }
  const subnet = region.subnets.get(subnetId);
  if (subnet === undefined) throw new ApiError('InvalidSubnetID.NotFound', `The subnet ID '${subnetId}' does not exist`, 400);
  if (zone !== undefined && subnet.zone !== zone) {
    throw new ApiError('InvalidParameterValue', `The availability zone '${zone}' does not match the subnet '${subnetId}'.`, 400);
  }
  return [subnet];
}

function groupsFor(
  ec2: Ec2,
  region: Ec2Region,
  vpcId: string,
  ids: readonly string[] | undefined,
  names: readonly string[] | undefined,
): readonly GroupRecord[] {
  const known = [...region.groups.values()].filter((group) => ec2.isVisible(group));
  const requested = [
    ...(ids ?? []).map((id) => ({ text: id, group: known.find((group) => group.id === id) })),
    ...(names ?? []).map((name) => ({ text: name, group: known.find((group) => group.name === name && group.vpcId === vpcId) })),
  ];
  const groups = requested.map(({ text, group }) => {
    if (group === undefined)
      throw new ApiError('InvalidGroup.NotFound', `The security group '${text}' does not exist in VPC '${vpcId}'`, 400);
    if (group.vpcId !== vpcId) {
      throw new ApiError('InvalidParameter', `Security group ${group.id} and subnet belong to different networks.`, 400);
    }
    return group;
  });
  return groups.length > 0 ? groups : known.filter((group) => group.name === 'default' && group.vpcId === vpcId);
}
