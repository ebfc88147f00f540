import type {
  CreateSecurityGroupRequest,
  CreateSecurityGroupResult,
  DeleteSecurityGroupRequest,
  DeleteSecurityGroupResult,
  DescribeSecurityGroupsRequest,
  DescribeSecurityGroupsResult,
} from '@aws-sdk/client-ec2';
import type { Caller } from '../core/action.ts';
import { ApiError } from '../wire/api-error.ts';
import type { Ec2 } from './ec2.ts';
import { filtered, type FilterFields } from './filters.ts';
import { shownPermissions } from './group-rules.ts';
import { page } from './paging.ts';
import type { GroupRecord, RuleRecord } from './records.ts';
import type { Ec2Region } from './region.ts';
import { checkTagKinds, shownTags, tagsFor } from './tagging.ts';

const nameForm = /^[\w .:/()#,@[\]+=&;{}!$*-]{1,255}$/;

/** Returns the group with that id; throws when reads do not see it. */
export function groupById(ec2: Ec2, region: Ec2Region, id: string): GroupRecord {
  if (!/^sg-(?:[\da-f]{8}|[\da-f]{17})$/.test(id))
    throw new ApiError('InvalidGroupId.Malformed', `Invalid id: "${id}" (expecting "sg-...")`, 400);
  const group = region.groups.get(id);
  if (group === undefined || !ec2.isVisible(group))
    throw new ApiError('InvalidGroup.NotFound', `The security group '${id}' does not exist`, 400);
  return group;
}

/** Returns a group by id or, in the default network, by name. */
export function groupNamed(ec2: Ec2, region: Ec2Region, id: string | undefined, name: string | undefined): GroupRecord {
  if (id !== undefined) return groupById(ec2, region, id);
  const vpcId = region.defaultVpc?.id;
  const group = [...region.groups.values()].find((one) => one.name === name && one.vpcId === vpcId && ec2.isVisible(one));
  if (group === undefined)
    throw new ApiError('InvalidGroup.NotFound', `The security group '${name ?? ''}' does not exist in default VPC '${vpcId ?? ''}'`, 400);
  return group;
}

/** Names are unique in a network, even before reads see the group. */
export function createSecurityGroup(
  ec2: Ec2,
  input: CreateSecurityGroupRequest,
  { region: regionName, key }: Caller,
): CreateSecurityGroupResult {
  const region = ec2.region(regionName);
  const vpcId = input.VpcId ?? region.defaultVpc?.id;
  const { GroupName: name = '', Description: description = '' } = input;
  if (vpcId === undefined) throw new ApiError('VPCIdNotSpecified', 'No default VPC for this user', 400);
  if (!region.vpcs.has(vpcId)) throw new ApiError('InvalidVpcID.NotFound', `The vpc ID '${vpcId}' does not exist`, 400);
  if (!nameForm.test(name) || name.startsWith('sg-'))
    throw new ApiError('InvalidParameterValue', `Value (${name}) for parameter GroupName is invalid.`, 400);
  if (!nameForm.test(description))
    throw new ApiError('InvalidParameterValue', `Value (${description}) for parameter GroupDescription is invalid.`, 400);
  checkTagKinds(input.TagSpecifications, ['security-group']);
  if ([...region.groups.values()].some((group) => group.name === name && group.vpcId === vpcId)) {
    throw new ApiError('InvalidGroup.Duplicate', `The security group '${name}' already exists for VPC '${vpcId}'`, 400);
  }
  const group: GroupRecord = {
    id: ec2.id('sg'),
    visibleAt: ec2.visibleAt('group'),
    tags: tagsFor(ec2, 'security-group', input.TagSpecifications),
    name,
    description,
    vpcId,
    rules: new Map(),
  };
  const allOut: RuleRecord = {
    id: ec2.id('sgr'),
    visibleAt: 0,
    tags: new Map(),
    protocol: '-1',
    fromPort: -1,
    toPort: -1,
    peer: '0.0.0.0/0',
    description: undefined,
    egress: true,
  };
  group.rules.set(allOut.id, allOut);
  region.groups.set(group.id, group);
  return {
    GroupId: group.id,
    SecurityGroupArn: `arn:aws:ec2:${regionName}:${key.account}:security-group/${group.id}`,
    Tags: [...group.tags].map(([Key, { value }]) => ({ Key, Value: value })),
  };
}

/** Refused while an instance, or a rule of another group, uses it. An instance uses it until it is terminated. */
export function deleteSecurityGroup(ec2: Ec2, input: DeleteSecurityGroupRequest, { region: name }: Caller): DeleteSecurityGroupResult {
  const region = ec2.region(name);
  const group = groupNamed(ec2, region, input.GroupId, input.GroupName);
  if (group.name === 'default')
    throw new ApiError('CannotDelete', `the specified group: "${group.id}" name: "default" cannot be deleted by a user`, 400);
  const used = [...region.instances.values()].some((one) => one.state !== 'terminated' && one.groupIds.includes(group.id));
  const named = [...region.groups.values()].some(
    (other) => other !== group && [...other.rules.values()].some(({ peer }) => peer === group.id),
  );
  if (used || named) throw new ApiError('DependencyViolation', `resource ${group.id} has a dependent object`, 400);
  region.groups.delete(group.id);
  return { Return: true, GroupId: group.id };
}

function incoming(group: GroupRecord): readonly RuleRecord[] {
  return [...group.rules.values()].filter(({ egress }) => !egress);
}

const fields: FilterFields<GroupRecord> = {
  'group-id': (one) => one.id,
  'group-name': (one) => one.name,
  'vpc-id': (one) => one.vpcId,
  description: (one) => one.description,
  'ip-permission.cidr': (one) => incoming(one).map(({ peer }) => peer),
  'ip-permission.from-port': (one) => incoming(one).map(({ fromPort }) => String(fromPort)),
  'ip-permission.to-port': (one) => incoming(one).map(({ toPort }) => String(toPort)),
  'ip-permission.group-id': (one) => incoming(one).map(({ peer }) => peer),
  'ip-permission.protocol': (one) => incoming(one).map(({ protocol }) => protocol),
};

/** Groups by id, by name in the default network, or by filter. */
export function describeSecurityGroups(
  ec2: Ec2,
  input: DescribeSecurityGroupsRequest,
  { region: name, key }: Caller,
): DescribeSecurityGroupsResult {
  const region = ec2.region(name);
  const ids = input.GroupIds;
  const names = input.GroupNames;
  const chosen =
    ids === undefined && names === undefined
      ? [...region.groups.values()].filter((group) => ec2.isVisible(group))
      : [...(ids ?? []).map((id) => groupById(ec2, region, id)), ...(names ?? []).map((each) => groupNamed(ec2, region, undefined, each))];
  const found = filtered(chosen, input.Filters, fields, ec2.now);
  const { items, ...rest } = page(found, input, { least: 5, most: 1_000 }, ec2.emulation.conduct.pageLimit);
  const groups = items.map((group) => ({
    GroupId: group.id,
    GroupName: group.name,
    Description: group.description,
    VpcId: group.vpcId,
    OwnerId: key.account,
    IpPermissions: shownPermissions(group, false, key.account),
    IpPermissionsEgress: shownPermissions(group, true, key.account),
    Tags: shownTags(group, ec2.now),
  }));
  return { SecurityGroups: groups, ...rest };
}
