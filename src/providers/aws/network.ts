import { PlaceRefusal } from '../place-refusal.ts';
import type { Ec2, Filter, Subnet, Vpc } from './client.ts';

/** Where machines of a region are put. */
export interface Network {
  readonly vpcId: string;
  /** The ranges of its private addresses. */
  readonly cidrs: readonly string[];
  /** The subnets to choose from; undefined in the default VPC, where AWS chooses better than we could. */
  readonly subnets: readonly NetworkSubnet[] | undefined;
}

/** Part of a network, in one zone. */
export interface NetworkSubnet {
  readonly id: string;
  readonly zone: string;
  readonly zoneId: string | undefined;
}

/**
 * The VPC that the configuration names, by id or `Name` tag, or the default one. Throws a refusal for the whole region, so that another one is
 * tried, when there is none.
 */
export async function findNetwork(ec2: Ec2, region: string, wanted: string | undefined, isPublic: boolean): Promise<Network> {
  const vpcs = await ec2.vpcs([vpcFilter(wanted)]);
  const [vpc] = vpcs;
  if (vpc?.VpcId === undefined) throw noVpc(region, wanted);
  if (vpcs.length > 1 && wanted !== undefined) throw severalVpcs(region, wanted, vpcs);
  const cidrs = [...new Set([vpc.CidrBlock, ...(vpc.CidrBlockAssociationSet ?? []).map(({ CidrBlock }) => CidrBlock)])];
  const network = { vpcId: vpc.VpcId, cidrs: cidrs.filter((cidr) => cidr !== undefined) };
  if (wanted === undefined) return { ...network, subnets: undefined };
  const subnets = usable(await ec2.subnets([{ Name: 'vpc-id', Values: [vpc.VpcId] }]), isPublic);
  if (subnets.length === 0) {
    throw new PlaceRefusal('unsupported', 'whole-region', `The VPC '${wanted}' in ${region} has no subnet with free addresses.`, {
      hint: 'Make a subnet in it, or name another one as aws.vpc in config.yaml.',
    });
  }
  return { ...network, subnets };
}

/**
 * Subnets to try one after another: one in each zone, or in the wanted one, beginning at a place that differs from machine to machine so that they
 * spread.
 */
export function subnetsToTry(subnets: readonly NetworkSubnet[], zone: string | undefined, spread: number): readonly NetworkSubnet[] {
  const fitting = subnets.filter((subnet, index) =>
    zone === undefined
      ? subnets.findIndex((other) => other.zone === subnet.zone) === index
      : subnet.zone === zone || subnet.zoneId === zone,
  );
  const begin = fitting.length === 0 ? 0 : spread % fitting.length;
  return [...fitting.slice(begin), ...fitting.slice(0, begin)];
}

function vpcFilter(wanted: string | undefined): Filter {
  if (wanted === undefined) return { Name: 'is-default', Values: ['true'] };
  return /^vpc-[0-9a-z]+$/.test(wanted) ? { Name: 'vpc-id', Values: [wanted] } : { Name: 'tag:Name', Values: [wanted] };
}

/** Those with free addresses, and where machines are to have public ones the subnets that are for those, when there are any. */
function usable(subnets: readonly Subnet[], isPublic: boolean): readonly NetworkSubnet[] {
  const free = subnets.filter(({ State, AvailableIpAddressCount }) => State !== 'pending' && AvailableIpAddressCount !== 0);
  const meant = free.filter(({ MapPublicIpOnLaunch }) => (MapPublicIpOnLaunch ?? false) === isPublic);
  return (meant.length > 0 ? meant : free)
    .flatMap(({ SubnetId, AvailabilityZone, AvailabilityZoneId }) =>
      SubnetId === undefined || AvailabilityZone === undefined
        ? []
        : [{ id: SubnetId, zone: AvailabilityZone, zoneId: AvailabilityZoneId }],
    )
    .toSorted((a, b) => (`${a.zone} ${a.id}` < `${b.zone} ${b.id}` ? -1 : 1));
}

function noVpc(region: string, wanted: string | undefined): PlaceRefusal {
  if (wanted !== undefined) {
    return new PlaceRefusal('unsupported', 'whole-region', `There is no VPC '${wanted}' in ${region}.`, {
      hint: 'Check aws.vpc in config.yaml, or list only regions that have it as aws.regions.',
    });
  }
  return new PlaceRefusal('unsupported', 'whole-region', `The account has no default VPC in ${region}.`, {
    hint: `Make one with: aws ec2 create-default-vpc --region ${region}; or name a VPC as aws.vpc in config.yaml.`,
  });
}

function severalVpcs(region: string, wanted: string, vpcs: readonly Vpc[]): PlaceRefusal {
  const ids = vpcs.map(({ VpcId }) => VpcId).join(', ');
  return new PlaceRefusal('unsupported', 'whole-region', `Several VPCs in ${region} are called '${wanted}': ${ids}.`, {
    hint: 'Name one of them by its id as aws.vpc in config.yaml.',
  });
}
