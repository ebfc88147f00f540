import type { Reservation as ReservationShown, RunInstancesRequest } from '@aws-sdk/client-ec2';
import type { Caller } from '../core/action.ts';
import type { Circumstances } from '../core/conduct.ts';
import { ApiError } from '../wire/api-error.ts';
import { makeVolumes, planVolumes, type VolumePlan } from './block-devices.ts';
import { showInstance } from './describe-instances.ts';
import type { Ec2 } from './ec2.ts';
import { findImage, type ImageData } from './image-data.ts';
import { comeUp } from './instance-life.ts';
import type { InstanceTypeData } from './instance-type-data.ts';
import { planNetwork, type NetworkPlan } from './launch-network.ts';
import { metadataOptions } from './metadata-options.ts';
import type { InstanceRecord, SubnetRecord } from './records.ts';
import type { Ec2Region, Reservation } from './region.ts';
import { makeSpotRequest, planSpot, type SpotPlan } from './spot-launch.ts';
import { checkTagKinds, tagsFor } from './tagging.ts';

const mostUserDataBytes = 16_384;

interface LaunchPlan {
  readonly type: InstanceTypeData;
  readonly image: ImageData;
  readonly imageId: string;
  readonly keyName: string | undefined;
  readonly network: NetworkPlan;
  readonly volumes: readonly VolumePlan[];
  readonly spot: SpotPlan | undefined;
  readonly instanceProfileArn: string | undefined;
  readonly userData: string | undefined;
  readonly shutdownBehavior: 'stop' | 'terminate';
}

/** Launches as many machines as possible: at least MinCount, or none. */
export function runInstances(
  ec2: Ec2,
  input: RunInstancesRequest,
  { region: regionName, key, fingerprint: parameters }: Caller,
): ReservationShown {
  const region = ec2.region(regionName);
  const { ClientToken: token, DryRun: dryRun } = input;
  if (token !== undefined && (token.length > 64 || token === ''))
    throw new ApiError('InvalidParameterValue', 'ClientToken may have at most 64 characters.', 400);
  const former = token === undefined ? undefined : region.reservations.get(token);
  if (former !== undefined && former.parameters !== parameters) {
    throw new ApiError(
      'IdempotentParameterMismatch',
      'Arguments on this idempotent request are inconsistent with arguments used in previous request(s).',
      400,
    );
  }
  if (former !== undefined) {
    // The first request already consumed all parameters.
    void Object.values(input);
    return showReservation(region, former, key.account);
  }
  const plan = planLaunch(ec2, region, input);
  if (dryRun === true) throw new ApiError('DryRunOperation', 'Request would have succeeded, but DryRun flag is set.', 412);
  const launched = launchAll(ec2, region, input, plan);
  const reservation: Reservation = { id: launched[0]?.reservationId ?? '', instanceIds: launched.map(({ id }) => id), parameters };
  region.reservations.set(token ?? reservation.id, reservation);
  for (const instance of launched) comeUp(ec2, instance, true);
  return showReservation(region, reservation, key.account);
}

/** The reply contains the instances, although reads may not see them yet. */
function showReservation(region: Ec2Region, reservation: Reservation, account: string): ReservationShown {
  const instances = reservation.instanceIds.flatMap((id) => region.instances.get(id) ?? []);
  return {
    ReservationId: reservation.id,
    OwnerId: account,
    Groups: [],
    Instances: instances.map((one) => showInstance(region, one, Number.POSITIVE_INFINITY)),
  };
}

function planLaunch(ec2: Ec2, region: Ec2Region, input: RunInstancesRequest): LaunchPlan {
  const type = ec2.type(input.InstanceType ?? 'm1.small');
  const imageId = input.ImageId ?? '';
  if (!/^ami-[\da-f]{8,17}$/.test(imageId))
    throw new ApiError('InvalidAMIID.Malformed', `Invalid id: "${imageId}" (expecting "ami-...")`, 400);
  const image = findImage(region.name, imageId);
  if (image === undefined) throw new ApiError('InvalidAMIID.NotFound', `The image id '[${imageId}]' does not exist`, 400);
  if (image.architecture !== type.architecture) {
    throw new ApiError(
      'InvalidParameterValue',
      `The architecture '${type.architecture}' of the specified instance type does not match the architecture '${image.architecture}' of the specified AMI. Specify an instance type and an AMI that have matching architectures, and try again.`,
      400,
    );
  }
  checkTagKinds(input.TagSpecifications, ['instance', 'volume', 'network-interface', 'spot-instances-request']);
  checkCounts(input);
  return {
    type,
    image,
    imageId,
    keyName: checkedKey(ec2, region, input.KeyName),
    network: planNetwork(ec2, region, input),
    volumes: planVolumes(image, input.BlockDeviceMappings),
    spot: planSpot(input.InstanceMarketOptions),
    instanceProfileArn: checkedProfile(ec2, input),
    userData: checkedUserData(input.UserData),
    shutdownBehavior: checkedShutdownBehavior(input.InstanceInitiatedShutdownBehavior),
  };
}

function checkedShutdownBehavior(behavior: string | undefined): 'stop' | 'terminate' {
  if (behavior === undefined || behavior === 'stop' || behavior === 'terminate') return behavior ?? 'stop';
  throw new ApiError('InvalidParameterValue', `Value (${behavior}) for parameter instanceInitiatedShutdownBehavior is invalid.`, 400);
}

function checkCounts({ MinCount: least, MaxCount: most }: RunInstancesRequest): void {
  if (least === undefined || most === undefined)
    throw new ApiError('MissingParameter', 'The request must contain the parameter MinCount', 400);
  if (least < 1 || most < least) throw new ApiError('InvalidParameterValue', `Value (${least}) for parameter minCount is invalid.`, 400);
}

function checkedKey(ec2: Ec2, region: Ec2Region, name: string | undefined): string | undefined {
  if (name === undefined || [...region.keys.values()].some((key) => key.name === name && ec2.isVisible(key))) return name;
  throw new ApiError('InvalidKeyPair.NotFound', `The key pair '${name}' does not exist`, 400);
}

function checkedProfile(ec2: Ec2, { IamInstanceProfile: profile }: RunInstancesRequest): string | undefined {
  if (profile === undefined) return undefined;
  const [field, value] = profile.Arn === undefined ? ['name', profile.Name ?? ''] : ['arn', profile.Arn];
  const arn = ec2.profileArn(value);
  if (arn !== undefined) return arn;
  throw new ApiError(
    'InvalidParameterValue',
    `Value (${value}) for parameter iamInstanceProfile.${field} is invalid. Invalid IAM Instance Profile ${field}`,
    400,
  );
}

function checkedUserData(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  if (!/^[A-Za-z\d+/\s]*={0,2}\s*$/.test(text)) throw new ApiError('InvalidParameterValue', 'Invalid BASE64 encoding of user data.', 400);
  if (Buffer.from(text, 'base64').length > mostUserDataBytes)
    throw new ApiError('InvalidParameterValue', 'User data is limited to 16384 bytes', 400);
  return text;
}

function launchAll(ec2: Ec2, region: Ec2Region, input: RunInstancesRequest, plan: LaunchPlan): readonly InstanceRecord[] {
  const subnets = placeAll(ec2, region, plan, input.MinCount ?? 1, input.MaxCount ?? 1);
  const reservationId = ec2.id('r');
  const visibleAt = ec2.visibleAt('instance');
  return subnets.map((subnet, launchIndex) => {
    const id = ec2.id('i');
    const request = plan.spot === undefined ? undefined : makeSpotRequest(ec2, region, plan.spot, id, subnet.zone, input.TagSpecifications);
    const instance: InstanceRecord = {
      id,
      visibleAt,
      tags: tagsFor(ec2, 'instance', input.TagSpecifications),
      reservationId,
      region: region.name,
      zone: subnet.zone,
      type: plan.type,
      image: plan.image,
      imageId: plan.imageId,
      keyName: plan.keyName,
      groupIds: plan.network.groupIds,
      subnetId: subnet.id,
      networkInterfaceId: ec2.id('eni'),
      privateIp: region.takeAddress(subnet.id),
      publicIp: undefined,
      wantsPublicIp: plan.network.publicIp ?? subnet.publicIps,
      state: 'pending',
      stateReason: { Code: 'pending', Message: 'pending' },
      stateTransitionReason: '',
      launchedAt: ec2.now,
      terminatedAt: undefined,
      clientToken: input.ClientToken,
      userData: plan.userData,
      shutdownBehavior: plan.shutdownBehavior,
      spotRequestId: request?.id,
      instanceProfileArn: plan.instanceProfileArn,
      metadataOptions: metadataOptions(input.MetadataOptions),
      rootDevice: plan.image.rootDevice,
      volumeIds: [],
      launchIndex,
      epoch: 0,
      rebalanceAt: undefined,
      interruptionAt: undefined,
    };
    region.instances.set(id, instance);
    makeVolumes(ec2, region, instance, plan.volumes, input.TagSpecifications);
    return instance;
  });
}

/**
 * Returns a subnet for each machine. Checks quotas first, then tries zones in any order until one has the minimum
 * count.
 */
function placeAll(ec2: Ec2, region: Ec2Region, plan: LaunchPlan, least: number, most: number): readonly SubnetRecord[] {
  ec2.emulation.conduct.checkPlacement(circumstances(region, plan));
  const zones = ec2.supply.shuffled(plan.network.subnets.map(({ id }) => id));
  let refusal: ApiError | undefined;
  for (const id of zones) {
    const subnet = region.subnets.get(id);
    if (subnet === undefined) continue;
    const placed: SubnetRecord[] = [];
    try {
      while (placed.length < most) {
        place(ec2, region, plan, subnet, placed.length);
        placed.push(subnet);
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      refusal = error;
    }
    if (placed.length >= least) return placed;
  }
  throw refusal ?? new ApiError('InsufficientInstanceCapacity', 'Insufficient capacity.', 500);
}

function circumstances(region: Ec2Region, { type, spot }: LaunchPlan): Circumstances {
  return { service: 'ec2', action: 'RunInstances', region: region.name, instanceType: type.name, spot: spot !== undefined };
}

function place(ec2: Ec2, region: Ec2Region, plan: LaunchPlan, subnet: SubnetRecord, already: number): void {
  const { type, spot } = plan;
  const requested = { region: region.name, zone: subnet.zone, type, spot: spot !== undefined, maxPrice: spot?.maxPrice };
  // Placed machines of this request count against capacity, although they have no records yet.
  const sample = {
    type,
    zone: subnet.zone,
    region: region.name,
    state: 'pending' as const,
    spotRequestId: spot === undefined ? undefined : 'sir',
  };
  const living = [...region.living, ...Array.from({ length: already }, () => sample)];
  ec2.emulation.conduct.checkPlacement({ ...circumstances(region, plan), zone: subnet.zone });
  ec2.supply.checkQuota(requested, living);
  ec2.supply.checkZone(requested, living, region.zones);
}
