import { AddressPool, ipNumber, ipText } from './addresses.ts';
import type {
  GroupRecord,
  InstanceRecord,
  KeyRecord,
  Resource,
  RuleRecord,
  SpotRequestRecord,
  SubnetRecord,
  VolumeRecord,
  VpcRecord,
} from './records.ts';
import type { RegionData } from './region-data.ts';

/** An executed request, kept to recognise its repetition. */
export interface Reservation {
  readonly id: string;
  readonly instanceIds: readonly string[];
  /** The parameters, to distinguish a repetition from another request with the same token. */
  readonly parameters: string;
}

/** State of one region of the account. Every record stays, in order of creation, unless it was deleted. */
export class Ec2Region {
  readonly name: string;
  /** Full names, such as `us-east-1a`. */
  readonly zones: readonly string[];
  readonly optIn: boolean;
  readonly instances = new Map<string, InstanceRecord>();
  readonly volumes = new Map<string, VolumeRecord>();
  readonly groups = new Map<string, GroupRecord>();
  readonly keys = new Map<string, KeyRecord>();
  readonly spotRequests = new Map<string, SpotRequestRecord>();
  readonly vpcs = new Map<string, VpcRecord>();
  readonly subnets = new Map<string, SubnetRecord>();
  readonly reservations = new Map<string, Reservation>();
  readonly #addresses = new Map<string, AddressPool>();
  readonly #id: (prefix: string) => string;

  constructor(data: RegionData, id: (prefix: string) => string) {
    this.#id = id;
    this.name = data.name;
    this.zones = data.zones.split('').map((letter) => data.name + letter);
    this.optIn = data.optIn;
    this.addVpc(true);
  }

  /** A network with a subnet in each zone; the default network assigns public addresses. */
  addVpc(isDefault: boolean): VpcRecord {
    const base = isDefault ? '172.31.0.0' : `10.${this.vpcs.size}.0.0`;
    const vpc: VpcRecord = { ...this.#resource('vpc'), cidr: `${base}/16`, isDefault };
    this.vpcs.set(vpc.id, vpc);
    for (const [index, zone] of this.zones.entries()) {
      const start = ipText(ipNumber(base) + index * 4_096);
      const subnet: SubnetRecord = {
        ...this.#resource('subnet'),
        zone,
        vpcId: vpc.id,
        cidr: `${start}/20`,
        isDefault,
        publicIps: isDefault,
        ipv6Only: false,
      };
      this.subnets.set(subnet.id, subnet);
      // AWS reserves the first four addresses of each subnet.
      this.#addresses.set(subnet.id, new AddressPool(ipText(ipNumber(start) + 3)));
    }
    const group: GroupRecord = {
      ...this.#resource('sg'),
      name: 'default',
      description: 'default VPC security group',
      vpcId: vpc.id,
      rules: new Map(),
    };
    this.groups.set(group.id, group);
    this.#allow(group, group.id, false);
    this.#allow(group, '0.0.0.0/0', true);
    return vpc;
  }

  /** As after a person deleted it: launches must name a subnet. */
  removeVpc(id: string): void {
    this.vpcs.delete(id);
    for (const subnet of this.subnets.values()) if (subnet.vpcId === id) this.subnets.delete(subnet.id);
    for (const group of this.groups.values()) if (group.vpcId === id) this.groups.delete(group.id);
  }

  get defaultVpc(): VpcRecord | undefined {
    return [...this.vpcs.values()].find((vpc) => vpc.isDefault);
  }

  takeAddress(subnetId: string): string {
    return this.#addresses.get(subnetId)?.take() ?? '172.31.0.4';
  }

  /** Instances that run, will run or can run again. */
  get living(): readonly InstanceRecord[] {
    return [...this.instances.values()].filter(({ state }) => state !== 'terminated' && state !== 'shutting-down');
  }

  /** A rule that allows all traffic; the default group has one in each direction. */
  #allow(group: GroupRecord, peer: string, egress: boolean): void {
    const rule: RuleRecord = { ...this.#resource('sgr'), protocol: '-1', fromPort: -1, toPort: -1, peer, description: undefined, egress };
    group.rules.set(rule.id, rule);
  }

  #resource(prefix: string): Resource {
    return { id: this.#id(prefix), visibleAt: 0, tags: new Map() };
  }
}
