import type {
  DescribeInstancesRequest,
  DescribeInstancesResult,
  DescribeInstanceStatusRequest,
  DescribeInstanceStatusResult,
  Instance,
  InstanceState as InstanceStateShown,
} from '@aws-sdk/client-ec2';
import type { Caller } from '../core/action.ts';
import { ApiError } from '../wire/api-error.ts';
import { privateDnsName, publicDnsName } from './addresses.ts';
import type { Ec2 } from './ec2.ts';
import { filtered, visibleTags, type FilterFields } from './filters.ts';
import { page } from './paging.ts';
import { stateCodes, type InstanceRecord, type InstanceState } from './records.ts';
import type { Ec2Region } from './region.ts';
import { requestOf } from './instance-life.ts';

/** A state with AWS's number for it. */
export function shownState(state: InstanceState): InstanceStateShown {
  return { Code: stateCodes[state], Name: state };
}

/** An instance in the format of replies. `now` decides which tags are visible. */
export function showInstance(region: Ec2Region, instance: InstanceRecord, now: number): Instance {
  const { type, publicIp, privateIp, state } = instance;
  const gone = state === 'terminated';
  const groups = instance.groupIds.map((id) => ({ GroupId: id, GroupName: region.groups.get(id)?.name ?? '' }));
  const volumes = instance.volumeIds.flatMap((id) => region.volumes.get(id) ?? []);
  return {
    InstanceId: instance.id,
    ImageId: instance.imageId,
    State: shownState(state),
    PrivateDnsName: gone ? '' : privateDnsName(privateIp, region.name),
    PublicDnsName: publicIp === undefined ? '' : publicDnsName(publicIp, region.name),
    StateTransitionReason: instance.stateTransitionReason,
    ...(instance.stateReason === undefined || state === 'running' ? {} : { StateReason: instance.stateReason }),
    ...(instance.keyName === undefined ? {} : { KeyName: instance.keyName }),
    ...(instance.clientToken === undefined ? {} : { ClientToken: instance.clientToken }),
    AmiLaunchIndex: instance.launchIndex,
    InstanceType: type.name,
    LaunchTime: new Date(instance.launchedAt),
    Placement: { AvailabilityZone: instance.zone, GroupName: '', Tenancy: 'default' },
    Monitoring: { State: 'disabled' },
    Architecture: type.architecture,
    RootDeviceType: 'ebs',
    RootDeviceName: instance.rootDevice,
    VirtualizationType: 'hvm',
    Hypervisor: 'xen',
    EbsOptimized: false,
    EnaSupport: true,
    MetadataOptions: instance.metadataOptions,
    ...(instance.spotRequestId === undefined ? {} : { SpotInstanceRequestId: instance.spotRequestId, InstanceLifecycle: 'spot' as const }),
    ...(instance.instanceProfileArn === undefined ? {} : { IamInstanceProfile: { Arn: instance.instanceProfileArn, Id: 'AIPAEXAMPLE' } }),
    ...(publicIp === undefined ? {} : { PublicIpAddress: publicIp }),
    ...(gone
      ? {}
      : { PrivateIpAddress: privateIp, SubnetId: instance.subnetId, VpcId: region.subnets.get(instance.subnetId)?.vpcId ?? '' }),
    SecurityGroups: gone ? [] : groups,
    NetworkInterfaces: gone ? [] : [showOwnInterface(region, instance, groups)],
    BlockDeviceMappings: volumes.map((volume) => ({
      DeviceName: volume.attachment?.device ?? '',
      Ebs: {
        VolumeId: volume.id,
        Status: 'attached' as const,
        AttachTime: new Date(volume.createdAt),
        DeleteOnTermination: volume.attachment?.deleteOnTermination ?? false,
      },
    })),
    Tags: [...visibleTags(instance, now)].map(([Key, Value]) => ({ Key, Value })),
  };
}

type InterfaceShown = NonNullable<Instance['NetworkInterfaces']>[number];

function showOwnInterface(region: Ec2Region, instance: InstanceRecord, groups: NonNullable<InterfaceShown['Groups']>): InterfaceShown {
  const { publicIp } = instance;
  return {
    NetworkInterfaceId: instance.networkInterfaceId,
    SubnetId: instance.subnetId,
    VpcId: region.subnets.get(instance.subnetId)?.vpcId ?? '',
    Status: 'in-use',
    PrivateIpAddress: instance.privateIp,
    Groups: groups,
    ...(publicIp === undefined
      ? {}
      : { Association: { PublicIp: publicIp, PublicDnsName: publicDnsName(publicIp, region.name), IpOwnerId: 'amazon' } }),
  };
}

function fields(region: Ec2Region): FilterFields<InstanceRecord> {
  const groupNames = (one: InstanceRecord): readonly (string | undefined)[] => one.groupIds.map((id) => region.groups.get(id)?.name);
  return {
    'instance-id': (one) => one.id,
    'instance-state-name': (one) => one.state,
    'instance-state-code': (one) => String(stateCodes[one.state]),
    'instance-type': (one) => one.type.name,
    'instance-lifecycle': (one) => (one.spotRequestId === undefined ? undefined : 'spot'),
    'availability-zone': (one) => one.zone,
    'client-token': (one) => one.clientToken,
    'image-id': (one) => one.imageId,
    'key-name': (one) => one.keyName,
    'subnet-id': (one) => one.subnetId,
    'vpc-id': (one) => region.subnets.get(one.subnetId)?.vpcId,
    'reservation-id': (one) => one.reservationId,
    'spot-instance-request-id': (one) => one.spotRequestId,
    'private-ip-address': (one) => one.privateIp,
    'ip-address': (one) => one.publicIp,
    'group-id': (one) => one.groupIds,
    'group-name': groupNames,
    'instance.group-id': (one) => one.groupIds,
    'instance.group-name': groupNames,
    architecture: (one) => one.type.architecture,
  };
}

/** Returns the instances that reads see: neither those that are too new nor those terminated long ago. */
function readable(ec2: Ec2, region: Ec2Region): readonly InstanceRecord[] {
  const shownUntil = ec2.now - ec2.emulation.timing.terminatedShownMs;
  return [...region.instances.values()].filter(
    (one) => ec2.isVisible(one) && (one.terminatedAt === undefined || one.terminatedAt > shownUntil),
  );
}

/** Returns the instances with these ids; throws for ids that reads do not see. */
export function instancesById(ec2: Ec2, region: Ec2Region, ids: readonly string[]): readonly InstanceRecord[] {
  for (const id of ids) {
    if (!/^i-(?:[\da-f]{8}|[\da-f]{17})$/.test(id)) throw new ApiError('InvalidInstanceID.Malformed', `Invalid id: "${id}"`, 400);
  }
  const known = new Map(readable(ec2, region).map((one) => [one.id, one]));
  const missing = ids.filter((id) => !known.has(id));
  if (missing.length > 0) {
    const text =
      missing.length === 1
        ? `The instance ID '${missing.join('')}' does not exist`
        : `The instance IDs '${missing.join(', ')}' do not exist`;
    throw new ApiError('InvalidInstanceID.NotFound', text, 400);
  }
  return ids.flatMap((id) => known.get(id) ?? []);
}

function selected(ec2: Ec2, region: Ec2Region, input: DescribeInstancesRequest): readonly InstanceRecord[] {
  const ids = input.InstanceIds;
  if (ids !== undefined && input.MaxResults !== undefined) {
    throw new ApiError('InvalidParameterCombination', 'The parameter instancesSet cannot be used with the parameter maxResults', 400);
  }
  const instances = ids === undefined ? readable(ec2, region) : instancesById(ec2, region, ids);
  return filtered(instances, input.Filters, fields(region), ec2.now);
}

/** Lists instances by id or filter, page by page, grouped by reservation. */
export function describeInstances(ec2: Ec2, input: DescribeInstancesRequest, { region: name, key }: Caller): DescribeInstancesResult {
  const region = ec2.region(name);
  const { items, ...rest } = page(selected(ec2, region, input), input, { least: 5, most: 1_000 }, ec2.emulation.conduct.pageLimit);
  const byReservation = Map.groupBy(items, (instance) => instance.reservationId);
  const reservations = [...byReservation].map(([ReservationId, instances]) => ({
    ReservationId,
    OwnerId: key.account,
    Groups: [],
    Instances: instances.map((instance) => showInstance(region, instance, ec2.now)),
  }));
  return { Reservations: reservations, ...rest };
}

/** Lists running instances only, unless all are requested. */
export function describeInstanceStatus(
  ec2: Ec2,
  input: DescribeInstanceStatusRequest,
  { region: name }: Caller,
): DescribeInstanceStatusResult {
  const region = ec2.region(name);
  const { IncludeAllInstances: all = false } = input;
  const chosen = selected(ec2, region, input).filter(({ state }) => all || state === 'running');
  const { items, ...rest } = page(chosen, input, { least: 5, most: 1_000 }, ec2.emulation.conduct.pageLimit);
  const statuses = items.map((one) => {
    const status = { Status: one.state === 'running' ? ('ok' as const) : ('not-applicable' as const) };
    const taken = requestOf(ec2, one)?.statusCode === 'marked-for-termination';
    const event = {
      Code: 'instance-stop' as const,
      Description: 'The instance is to be interrupted',
      NotBefore: new Date(one.interruptionAt ?? 0),
    };
    return {
      InstanceId: one.id,
      AvailabilityZone: one.zone,
      InstanceState: shownState(one.state),
      InstanceStatus: status,
      SystemStatus: status,
      ...(taken ? { Events: [event] } : {}),
    };
  });
  return { InstanceStatuses: statuses, ...rest };
}
