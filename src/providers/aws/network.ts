import { ProviderRefusal } from '../provider-refusal.ts';
import type { Ec2, Filter, Subnet, Vpc } from './client.ts';

/** The network for machines of a region. */
export interface Network {
  readonly vpcId: string;
  readonly cidrs: readonly string[];
  /** Undefined in the default VPC, where AWS makes the better choice. */
  readonly subnets: readonly NetworkSubnet[] | undefined;
}

interface NetworkSubnet {
  readonly id: string;
  readonly zone: string;
  readonly zoneId: string | undefined;
}

/** The requested VPC (id or `Name` tag), or the default one. Without it, throws a refusal for the whole region. */
export async function findNetwork(ec2: Ec2, region: string, requested: string | undefined, isPublic: boolean): Promise<Network> {
  const vpcs = await ec2.vpcs([vpcFilter(requested)]);
  const [vpc] = vpcs;
  if (vpc?.VpcId === undefined) throw noVpc(region, requested);
  if (vpcs.length > 1 && requested !== undefined) throw severalVpcs(region, requested, vpcs);
  const cidrs = [...new Set([vpc.CidrBlock, ...(vpc.CidrBlockAssociationSet ?? []).map(({ CidrBlock }) => CidrBlock)])];
  const network = { vpcId: vpc.VpcId, cidrs: cidrs.filter((cidr) => cidr !== undefined) };
  if (requested === undefined) return { ...network, subnets: undefined };
  const subnets = usable(await ec2.subnets([{ Name: 'vpc-id', Values: [vpc.VpcId] }]), isPublic);
  if (subnets.length === 0) {
    throw new ProviderRefusal('unsupported', 'whole-region', `The VPC '${requested}' in ${region} has no subnet with free addresses.`, {
      hint: 'Make a subnet in it, or name another one as aws.vpc in config.yaml.',
    });
  }
  return { ...network, subnets };
}

/** One subnet per zone, or those in the requested zone. `spread` differs between machines, so that they spread. */
export function subnetsToTry(subnets: readonly NetworkSubnet[], zone: string | undefined, spread: number): readonly NetworkSubnet[] {
  const fitting = subnets.filter((subnet, index) =>
    zone === undefined
      ? subnets.findIndex((other) => other.zone === subnet.zone) === index
      : subnet.zone === zone || subnet.zoneId === zone,
  );
  const begin = fitting.length === 0 ? 0 : spread % fitting.length;
  return [...fitting.slice(begin), ...fitting.slice(0, begin)];
}

function vpcFilter(requested: string | undefined): Filter {
  if (requested === undefined) return { Name: 'is-default', Values: ['true'] };
  return /^vpc-[0-9a-z]+$/.test(requested) ? { Name: 'vpc-id', Values: [requested] } : { Name: 'tag:Name', Values: [requested] };
}

/** Subnets with free IPv4 addresses. Prefers those whose default agrees with `isPublic`. */
function usable(subnets: readonly Subnet[], isPublic: boolean): readonly NetworkSubnet[] {
  const free = subnets.filter(
    // Machines are reached over IPv4.
    ({ State, AvailableIpAddressCount, Ipv6Native }) => State !== 'pending' && AvailableIpAddressCount !== 0 && Ipv6Native !== true,
  );
  const meant = free.filter(({ MapPublicIpOnLaunch }) => (MapPublicIpOnLaunch ?? false) === isPublic);
  return (meant.length > 0 ? meant : free)
    .flatMap(({ SubnetId, AvailabilityZone, AvailabilityZoneId }) =>
      SubnetId === undefined || AvailabilityZone === undefined
        ? []
        : [{ id: SubnetId, zone: AvailabilityZone, zoneId: AvailabilityZoneId }],
    )
    .toSorted((a, b) => (`${a.zone} ${a.id}` < `${b.zone} ${b.id}` ? -1 : 1));
}

function noVpc(region: string, requested: string | undefined): ProviderRefusal {
  if (requested !== undefined) {
    return new ProviderRefusal('unsupported', 'whole-region', `There is no VPC '${requested}' in ${region}.`, {
      hint: 'Check aws.vpc in config.yaml, or list only regions that have it as aws.regions.',
    });
  }
  return new ProviderRefusal('unsupported', 'whole-region', `The account has no default VPC in ${region}.`, {
    hint: `Make one with: aws ec2 create-default-vpc --region ${region}; or name a VPC as aws.vpc in config.yaml.`,
  });
}

function severalVpcs(region: string, requested: string, vpcs: readonly Vpc[]): ProviderRefusal {
  const ids = vpcs.map(({ VpcId }) => VpcId).join(', ');
  return new ProviderRefusal('unsupported', 'whole-region', `Several VPCs in ${region} are called '${requested}': ${ids}.`, {
    hint: 'Name one of them by its id as aws.vpc in config.yaml.',
  });
}
