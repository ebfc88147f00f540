import type { IpPermission } from '@aws-sdk/client-ec2';
import { ApiError } from '../wire/api-error.ts';
import { isCidr } from './addresses.ts';
import type { GroupRecord, RuleRecord } from './records.ts';

/** A rule before it has an id. */
export type RulePlan = Pick<RuleRecord, 'protocol' | 'fromPort' | 'toPort' | 'peer' | 'description' | 'egress'>;

const protocolNumbers: Readonly<Record<string, string>> = { '6': 'tcp', '17': 'udp', '1': 'icmp', all: '-1' };

/** Returns the rules of the permissions: one for each range or group. */
export function planRules(permissions: readonly IpPermission[], egress: boolean): readonly RulePlan[] {
  if (permissions.length === 0) throw new ApiError('MissingParameter', 'The request must contain the parameter ipPermissions', 400);
  return permissions.flatMap((permission) => {
    const given = (permission.IpProtocol ?? '').toLowerCase();
    const protocol = protocolNumbers[given] ?? given;
    if (!['tcp', 'udp', 'icmp', '-1'].includes(protocol))
      throw new ApiError('InvalidParameterValue', `Invalid value '${given}' for IP protocol. Unknown protocol.`, 400);
    const [fromPort, toPort] = ports(permission, protocol);
    const peers = [
      ...(permission.IpRanges ?? []).map(({ CidrIp, Description }) => ({ peer: checkedCidr(CidrIp ?? ''), description: Description })),
      ...(permission.Ipv6Ranges ?? []).map(({ CidrIpv6, Description }) => ({ peer: CidrIpv6 ?? '', description: Description })),
      ...(permission.UserIdGroupPairs ?? []).map(({ GroupId, Description }) => ({ peer: GroupId ?? '', description: Description })),
    ];
    if (peers.length === 0)
      throw new ApiError('InvalidParameterValue', 'Missing source specification: include source security group or CIDR information', 400);
    return peers.map(({ peer, description }) => ({ protocol, fromPort, toPort, peer, description, egress }));
  });
}

function ports({ FromPort: from, ToPort: to }: IpPermission, protocol: string): readonly [number, number] {
  if (protocol === '-1') return [-1, -1];
  if (from === undefined || to === undefined)
    throw new ApiError('InvalidParameterValue', `Invalid value for portRange. Must specify both from and to ports with TCP/UDP.`, 400);
  if (protocol !== 'icmp' && (from < 0 || to > 65_535 || from > to)) {
    throw new ApiError('InvalidParameterValue', `Invalid value '${from}-${to}' for portRange.`, 400);
  }
  return [from, to];
}

function checkedCidr(text: string): string {
  if (isCidr(text)) return text;
  throw new ApiError('InvalidParameterValue', `CIDR block ${text} is malformed`, 400);
}

/** Whether two rules allow the same traffic; descriptions do not matter. */
export function sameRule(a: RulePlan, b: RulePlan): boolean {
  return a.protocol === b.protocol && a.fromPort === b.fromPort && a.toPort === b.toPort && a.peer === b.peer && a.egress === b.egress;
}

/** The rule as AWS writes it in its errors. */
export function ruleText(rule: RulePlan): string {
  const range = rule.protocol === '-1' ? 'ALL' : `${rule.protocol.toUpperCase()}, from port: ${rule.fromPort}, to port: ${rule.toPort}`;
  return `"peer: ${rule.peer}, ${range}, ALLOW"`;
}

function described({ description }: RuleRecord): { readonly Description?: string } {
  return description === undefined ? {} : { Description: description };
}

/** Returns a group's rules of one direction, merged by ports. */
export function shownPermissions(group: GroupRecord, egress: boolean, account: string): IpPermission[] {
  const rules = [...group.rules.values()].filter((rule) => rule.egress === egress);
  const byPorts = Map.groupBy(rules, (rule) => `${rule.protocol} ${rule.fromPort} ${rule.toPort}`);
  return [...byPorts.values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined) return [];
    return {
      IpProtocol: first.protocol,
      ...(first.protocol === '-1' ? {} : { FromPort: first.fromPort, ToPort: first.toPort }),
      IpRanges: same.filter(({ peer }) => isCidr(peer)).map((rule) => ({ CidrIp: rule.peer, ...described(rule) })),
      Ipv6Ranges: same.filter(({ peer }) => peer.includes(':')).map((rule) => ({ CidrIpv6: rule.peer, ...described(rule) })),
      PrefixListIds: [],
      UserIdGroupPairs: same
        .filter(({ peer }) => peer.startsWith('sg-'))
        .map((rule) => ({ GroupId: rule.peer, UserId: account, ...described(rule) })),
    };
  });
}
