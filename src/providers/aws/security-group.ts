import { SvcError } from '../../shared/errors.ts';
import { missingOpenings, type Opening } from '../vm/ingress.ts';
import { untilFound, whileNotYet, type Patience } from '../vm/patience.ts';
import { sharedTags } from '../vm/tags.ts';
import type { Ec2, Filter, IpPermission, SecurityGroup } from './client.ts';
import { awsCode, awsCodes, hasAwsCode } from './errors.ts';
import { ofHome, tagList } from './tags.ts';

/** A group is not yet known, or gone. The second code is for groups of VPCs that are not the default one. */
export const groupMissing = ['InvalidGroup.NotFound', 'InvalidSecurityGroupID.NotFound'] as const;

interface GroupOwner {
  readonly home: string;
  readonly owner: string;
  readonly vpcId: string;
}

/** What a group must allow. */
interface Access {
  readonly openings: readonly Opening[];
  /** The opening of SSH to this machine's own address, which may change. Undefined: no opening is for it. */
  readonly ownCidr: string | undefined;
}

/**
 * The owner's firewall group in a VPC with at least these openings, created if needed. Concurrent processes get the
 * same group. Existing openings stay, because other machines may need them; a former own address does not.
 */
export async function ensureGroup(ec2: Ec2, who: GroupOwner, access: Access, patience: Patience): Promise<string> {
  const found = (await findGroup(ec2, who)) ?? (await makeGroup(ec2, who, patience));
  const id = found.GroupId;
  if (id === undefined) throw new SvcError('SVC_PLACE_FAILED', `AWS made the security group ${groupName(who)} without an id.`);
  await whileNotYet(patience, awsCodes(...groupMissing), () => openIn(ec2, found, access));
  return id;
}

/** Opens all groups of an owner in a region. Returns whether one of them lacked an opening. */
export async function openInGroups(ec2: Ec2, { home, owner }: Omit<GroupOwner, 'vpcId'>, access: Access): Promise<boolean> {
  const groups = await ec2.securityGroups(ofHome(home, owner));
  const opened = await Promise.all(groups.map((group) => openIn(ec2, group, access)));
  return opened.includes(true);
}

/** Throws SVC_PLACE_FAILED while a group is in use. */
export async function removeGroups(ec2: Ec2, region: string, filters: Filter[]): Promise<void> {
  const groups = await ec2.securityGroups(filters);
  for (const { GroupId } of groups) {
    if (GroupId === undefined) continue;
    try {
      await ec2.deleteSecurityGroup(GroupId);
    } catch (error) {
      if (hasAwsCode(error, ...groupMissing)) continue;
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

/** The description of rules for this machine's own address. Source of its alphabet: `IpRange` in the EC2 API reference. */
const ownAddressRule = 'svc: address of the machine that launched';

/** Returns whether an opening was missing. */
async function openIn(ec2: Ec2, group: SecurityGroup, { openings, ownCidr }: Access): Promise<boolean> {
  const { GroupId = '' } = group;
  const present = openingsOf(group);
  const missing = missingOpenings(openings, present);
  if (missing.length > 0) await open(ec2, GroupId, missing, ownCidr);
  const former = ownCidr === undefined ? [] : present.filter(({ cidr, isOwn }) => isOwn && cidr !== ownCidr);
  if (former.length > 0) await close(ec2, GroupId, former);
  return missing.length > 0;
}

async function open(ec2: Ec2, GroupId: string, openings: readonly Opening[], ownCidr: string | undefined): Promise<void> {
  try {
    await ec2.authorizeIngress({ GroupId, IpPermissions: openings.map((one) => permission(one, one.cidr === ownCidr)) });
  } catch (error) {
    if (!hasAwsCode(error, 'InvalidPermission.Duplicate')) throw error;
    if (openings.length === 1) return;
    // One request per opening: AWS rejects a whole request if one of its openings exists.
    for (const opening of openings) await open(ec2, GroupId, [opening], ownCidr);
  }
}

/** A rule that stays open does no harm to the launch: another process may have closed it, or the right is missing. */
async function close(ec2: Ec2, GroupId: string, openings: readonly Opening[]): Promise<void> {
  try {
    await ec2.revokeIngress({ GroupId, IpPermissions: openings.map((one) => permission(one, false)) });
  } catch (error) {
    if (awsCode(error) === undefined) throw error;
  }
}

function permission({ from, to, cidr }: Opening, isOwn: boolean): IpPermission {
  const described = isOwn ? { Description: ownAddressRule } : {};
  const range = cidr.includes(':') ? { Ipv6Ranges: [{ CidrIpv6: cidr, ...described }] } : { IpRanges: [{ CidrIp: cidr, ...described }] };
  return { IpProtocol: 'tcp', FromPort: from, ToPort: to, ...range };
}

interface PresentOpening extends Opening {
  readonly isOwn: boolean;
}

function openingsOf({ IpPermissions = [] }: SecurityGroup): readonly PresentOpening[] {
  return IpPermissions.filter(({ IpProtocol }) => IpProtocol === 'tcp').flatMap(({ FromPort, ToPort, IpRanges, Ipv6Ranges }) => {
    if (FromPort === undefined || ToPort === undefined) return [];
    const ranges = [
      ...(IpRanges ?? []).map(({ CidrIp, Description }) => ({ cidr: CidrIp, Description })),
      ...(Ipv6Ranges ?? []).map(({ CidrIpv6, Description }) => ({ cidr: CidrIpv6, Description })),
    ];
    return ranges.flatMap(({ cidr, Description }) =>
      cidr === undefined ? [] : [{ from: FromPort, to: ToPort, cidr, isOwn: Description === ownAddressRule }],
    );
  });
}
