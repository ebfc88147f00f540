import { SvcError } from '../../shared/errors.ts';
import { missingOpenings, type Opening } from '../vm/ingress.ts';
import { untilFound, whileNotYet, type Patience } from '../vm/patience.ts';
import { sharedTags } from '../vm/tags.ts';
import type { Ec2, Filter, IpPermission, SecurityGroup } from './client.ts';
import { awsCodes, hasAwsCode } from './errors.ts';
import { tagList } from './tags.ts';

interface GroupOwner {
  readonly home: string;
  readonly owner: string;
  readonly vpcId: string;
}

/**
 * The owner's firewall group in a VPC with at least these openings, created if needed. Concurrent processes get the
 * same group. Existing openings stay, because other machines may need them.
 */
export async function ensureGroup(ec2: Ec2, who: GroupOwner, openings: readonly Opening[], patience: Patience): Promise<string> {
  const found = (await findGroup(ec2, who)) ?? (await makeGroup(ec2, who, patience));
  const id = found.GroupId;
  if (id === undefined) throw new SvcError('SVC_PLACE_FAILED', `AWS made the security group ${groupName(who)} without an id.`);
  const missing = missingOpenings(openings, openingsOf(found));
  if (missing.length > 0) await whileNotYet(patience, awsCodes('InvalidGroup.NotFound'), () => open(ec2, id, missing));
  return id;
}

/** Throws SVC_PLACE_FAILED while a group is in use. */
export async function removeGroups(ec2: Ec2, region: string, filters: Filter[]): Promise<void> {
  const groups = await ec2.securityGroups(filters);
  for (const { GroupId } of groups) {
    if (GroupId === undefined) continue;
    try {
      await ec2.deleteSecurityGroup(GroupId);
    } catch (error) {
      if (hasAwsCode(error, 'InvalidGroup.NotFound')) continue;
      if (!hasAwsCode(error, 'DependencyViolation', 'InvalidGroup.InUse')) throw error;
      throw new SvcError('SVC_PLACE_FAILED', `The security group ${GroupId} in ${region} is still used by a machine that is going away.`);
    }
  }
}

const groupName = ({ owner }: Pick<GroupOwner, 'owner'>): string => `svc-${owner.replaceAll(/[^\w.:/()#,@[\]+=&;{}!$*-]/g, '_')}`;

async function findGroup(ec2: Ec2, who: GroupOwner): Promise<SecurityGroup | undefined> {
  const [group] = await ec2.securityGroups([
    { Name: 'group-name', Values: [groupName(who)] },
    { Name: 'vpc-id', Values: [who.vpcId] },
  ]);
  return group;
}

async function makeGroup(ec2: Ec2, who: GroupOwner, patience: Patience): Promise<SecurityGroup> {
  try {
    const GroupId = await ec2.createSecurityGroup({
      GroupName: groupName(who),
      Description: `Machines of ${who.owner}, made by svc`,
      VpcId: who.vpcId,
      TagSpecifications: [{ ResourceType: 'security-group', Tags: tagList(sharedTags(who.home, who.owner)) }],
    });
    if (GroupId !== undefined) return { GroupId };
  } catch (error) {
    if (!hasAwsCode(error, 'InvalidGroup.Duplicate')) throw error;
  }
  // Another process just created the group, or an earlier attempt did, without a response. It becomes visible soon.
  const other = await untilFound(patience, () => findGroup(ec2, who));
  if (other === undefined)
    throw new SvcError('SVC_PLACE_FAILED', `AWS says that the security group ${groupName(who)} exists but does not show it.`);
  return other;
}

async function open(ec2: Ec2, GroupId: string, openings: readonly Opening[]): Promise<void> {
  try {
    await ec2.authorizeIngress({ GroupId, IpPermissions: openings.map(permission) });
  } catch (error) {
    if (!hasAwsCode(error, 'InvalidPermission.Duplicate')) throw error;
    if (openings.length === 1) return;
    // One request per opening: AWS rejects a whole request if one of its openings exists.
    for (const opening of openings) await open(ec2, GroupId, [opening]);
  }
}

function permission({ from, to, cidr }: Opening): IpPermission {
  const range = cidr.includes(':') ? { Ipv6Ranges: [{ CidrIpv6: cidr }] } : { IpRanges: [{ CidrIp: cidr }] };
  return { IpProtocol: 'tcp', FromPort: from, ToPort: to, ...range };
}

function openingsOf({ IpPermissions = [] }: SecurityGroup): readonly Opening[] {
  return IpPermissions.filter(({ IpProtocol }) => IpProtocol === 'tcp').flatMap(({ FromPort, ToPort, IpRanges, Ipv6Ranges }) => {
    if (FromPort === undefined || ToPort === undefined) return [];
    const cidrs = [...(IpRanges ?? []).map(({ CidrIp }) => CidrIp), ...(Ipv6Ranges ?? []).map(({ CidrIpv6 }) => CidrIpv6)];
    return cidrs.flatMap((cidr) => (cidr === undefined ? [] : [{ from: FromPort, to: ToPort, cidr }]));
  });
}
