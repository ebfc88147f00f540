import type {
  AuthorizeSecurityGroupEgressRequest,
  AuthorizeSecurityGroupIngressRequest,
  AuthorizeSecurityGroupIngressResult,
  DescribeSecurityGroupRulesRequest,
  DescribeSecurityGroupRulesResult,
  IpPermission,
  RevokeSecurityGroupEgressRequest,
  RevokeSecurityGroupIngressRequest,
  RevokeSecurityGroupIngressResult,
  SecurityGroupRule,
} from '@aws-sdk/client-ec2';
import type { Caller } from '../core/action.ts';
import { ApiError } from '../wire/api-error.ts';
import { isCidr } from './addresses.ts';
import type { Ec2 } from './ec2.ts';
import { filtered, type FilterFields } from './filters.ts';
import { planRules, ruleText, sameRule } from './group-rules.ts';
import { groupById, groupNamed } from './groups.ts';
import { page } from './paging.ts';
import type { GroupRecord, RuleRecord } from './records.ts';
import { checkTagKinds, shownTags, tagsFor } from './tagging.ts';

/** Parses the parameters of a single ingress rule without a list: `CidrIp`, `FromPort` and so on. */
function ingressPermissions(input: AuthorizeSecurityGroupIngressRequest | RevokeSecurityGroupIngressRequest): readonly IpPermission[] {
  const { IpPermissions: permissions, CidrIp: cidr, FromPort: from, ToPort: to, IpProtocol: protocol } = input;
  if (permissions !== undefined || cidr === undefined) return permissions ?? [];
  return [{ IpProtocol: protocol, FromPort: from, ToPort: to, IpRanges: [{ CidrIp: cidr }] }];
}

function show(ec2: Ec2, group: GroupRecord, rule: RuleRecord, account: string): SecurityGroupRule {
  const peer = isCidr(rule.peer)
    ? { CidrIpv4: rule.peer }
    : rule.peer.includes(':')
      ? { CidrIpv6: rule.peer }
      : { ReferencedGroupInfo: { GroupId: rule.peer, UserId: account } };
  return {
    SecurityGroupRuleId: rule.id,
    GroupId: group.id,
    GroupOwnerId: account,
    IsEgress: rule.egress,
    IpProtocol: rule.protocol,
    FromPort: rule.fromPort,
    ToPort: rule.toPort,
    ...peer,
    ...(rule.description === undefined ? {} : { Description: rule.description }),
    Tags: shownTags(rule, ec2.now),
  };
}

type Specifications = AuthorizeSecurityGroupIngressRequest['TagSpecifications'];

/** Adds all rules or none: an existing rule refuses the request. */
function authorize(
  ec2: Ec2,
  region: string,
  group: GroupRecord,
  permissions: readonly IpPermission[],
  egress: boolean,
  specifications: Specifications,
  account: string,
): AuthorizeSecurityGroupIngressResult {
  checkTagKinds(specifications, ['security-group-rule']);
  const plans = planRules(permissions, egress);
  for (const { peer } of plans) if (peer.startsWith('sg-')) groupById(ec2, ec2.region(region), peer);
  for (const plan of plans) {
    if ([...group.rules.values()].some((rule) => sameRule(rule, plan))) {
      throw new ApiError('InvalidPermission.Duplicate', `the specified rule ${ruleText(plan)} already exists`, 400);
    }
  }
  const rules = plans.map((plan): RuleRecord => ({
    ...plan,
    id: ec2.id('sgr'),
    visibleAt: 0,
    tags: tagsFor(ec2, 'security-group-rule', specifications),
  }));
  for (const rule of rules) group.rules.set(rule.id, rule);
  return { Return: true, SecurityGroupRules: rules.map((rule) => show(ec2, group, rule, account)) };
}

/** Authorizes ingress. */
export function authorizeIngress(
  ec2: Ec2,
  input: AuthorizeSecurityGroupIngressRequest,
  { region, key }: Caller,
): AuthorizeSecurityGroupIngressResult {
  const group = groupNamed(ec2, ec2.region(region), input.GroupId, input.GroupName);
  return authorize(ec2, region, group, ingressPermissions(input), false, input.TagSpecifications, key.account);
}

/** Authorizes egress. */
export function authorizeEgress(
  ec2: Ec2,
  input: AuthorizeSecurityGroupEgressRequest,
  { region, key }: Caller,
): AuthorizeSecurityGroupIngressResult {
  const group = groupById(ec2, ec2.region(region), input.GroupId ?? '');
  return authorize(ec2, region, group, input.IpPermissions ?? [], true, input.TagSpecifications, key.account);
}

/** Revokes rules, by id or by content: all of them or none. */
function revoke(
  group: GroupRecord,
  permissions: readonly IpPermission[],
  ids: readonly string[] | undefined,
  egress: boolean,
): RevokeSecurityGroupIngressResult {
  const requested =
    ids === undefined
      ? planRules(permissions, egress).map((plan) => [...group.rules.values()].find((rule) => sameRule(rule, plan)))
      : ids.map((id) => group.rules.get(id));
  const found = requested.filter((rule) => rule !== undefined);
  if (found.length < requested.length) {
    if (ids !== undefined)
      throw new ApiError('InvalidSecurityGroupRuleId.NotFound', `The security group rule ID '${ids.join(', ')}' does not exist`, 400);
    throw new ApiError('InvalidPermission.NotFound', 'The specified rule does not exist in this security group.', 400);
  }
  for (const rule of found) group.rules.delete(rule.id);
  return { Return: true };
}

/** Revokes ingress. */
export function revokeIngress(ec2: Ec2, input: RevokeSecurityGroupIngressRequest, { region }: Caller): RevokeSecurityGroupIngressResult {
  const group = groupNamed(ec2, ec2.region(region), input.GroupId, input.GroupName);
  return revoke(group, ingressPermissions(input), input.SecurityGroupRuleIds, false);
}

/** Revokes egress. */
export function revokeEgress(ec2: Ec2, input: RevokeSecurityGroupEgressRequest, { region }: Caller): RevokeSecurityGroupIngressResult {
  const group = groupById(ec2, ec2.region(region), input.GroupId ?? '');
  return revoke(group, input.IpPermissions ?? [], input.SecurityGroupRuleIds, true);
}

/** Lists single rules of the groups that reads see. */
export function describeRules(
  ec2: Ec2,
  input: DescribeSecurityGroupRulesRequest,
  { region, key }: Caller,
): DescribeSecurityGroupRulesResult {
  const { SecurityGroupRuleIds: ids } = input;
  const all = [...ec2.region(region).groups.values()]
    .filter((group) => ec2.isVisible(group))
    .flatMap((group) => [...group.rules.values()].map((rule) => ({ id: rule.id, tags: rule.tags, group, rule })));
  const fields: FilterFields<(typeof all)[number]> = {
    'group-id': ({ group }) => group.id,
    'security-group-rule-id': ({ rule }) => rule.id,
  };
  const chosen = filtered(ids === undefined ? all : all.filter(({ id }) => ids.includes(id)), input.Filters, fields, ec2.now);
  const { items, ...rest } = page(chosen, input, { least: 5, most: 1_000 }, ec2.emulation.conduct.pageLimit);
  return { SecurityGroupRules: items.map(({ group, rule }) => show(ec2, group, rule, key.account)), ...rest };
}
