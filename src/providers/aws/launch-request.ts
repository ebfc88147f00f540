import type { MachineSpec, Offer } from '../provider.ts';
import type { LaunchRequest } from './client.ts';
import type { RootDisk } from './disk.ts';
import type { Image } from './image-choice.ts';
import { machineTags } from './tags.ts';

/** Everything that a request for a machine is made of. */
export interface LaunchParts {
  readonly offer: Offer;
  readonly spec: MachineSpec;
  readonly key: string;
  readonly home: string;
  readonly image: Image;
  readonly disk: RootDisk;
  readonly keyName: string;
  readonly groupId: string;
  /** undefined: AWS takes one of the default VPC, in the offer's zone when it names one. */
  readonly subnetId: string | undefined;
  readonly publicAddress: boolean;
  readonly userData: string;
  readonly instanceProfile: string | undefined;
  readonly clientToken: string;
}

/** The request, and always the same one for the same parts: AWS compares requests that come with one token. */
export function launchRequest(parts: LaunchParts): LaunchRequest {
  const { offer, spec, image } = parts;
  const tags = machineTags(spec, parts.key, parts.home, image.user);
  const kinds = ['instance', 'volume', 'network-interface', ...(offer.spot ? (['spot-instances-request'] as const) : [])] as const;
  return {
    ImageId: image.id,
    InstanceType: offer.instanceType,
    MinCount: 1,
    MaxCount: 1,
    ClientToken: parts.clientToken,
    KeyName: parts.keyName,
    UserData: Buffer.from(parts.userData).toString('base64'),
    BlockDeviceMappings: [blockDevice(parts)],
    // Programs on the machine reach its metadata only with a token, and containers on it not at all.
    MetadataOptions: { HttpTokens: 'required', HttpPutResponseHopLimit: 1, HttpEndpoint: 'enabled' },
    // A replica that shuts itself down is to cost nothing; a controller is to come back as it was.
    InstanceInitiatedShutdownBehavior: spec.role === 'replica' ? 'terminate' : 'stop',
    TagSpecifications: kinds.map((ResourceType) => ({ ResourceType, Tags: tags })),
    ...placement(parts),
    ...(parts.instanceProfile === undefined ? {} : { IamInstanceProfile: { Name: parts.instanceProfile } }),
    ...(offer.spot
      ? {
          InstanceMarketOptions: {
            MarketType: 'spot',
            SpotOptions: { SpotInstanceType: 'one-time', InstanceInterruptionBehavior: 'terminate' },
          },
        }
      : {}),
  };
}

function placement({ offer, subnetId, groupId, publicAddress }: LaunchParts): Partial<LaunchRequest> {
  if (subnetId === undefined) {
    return { SecurityGroupIds: [groupId], ...(offer.zone === undefined ? {} : { Placement: zoneOf(offer.zone) }) };
  }
  const address = { DeviceIndex: 0, SubnetId: subnetId, Groups: [groupId], AssociatePublicIpAddress: publicAddress };
  return { NetworkInterfaces: [{ ...address, DeleteOnTermination: true }] };
}

function blockDevice({ image, disk }: LaunchParts): NonNullable<LaunchRequest['BlockDeviceMappings']>[number] {
  const { sizeGb, type, iops, throughput } = disk;
  return {
    DeviceName: image.rootDevice,
    Ebs: {
      VolumeSize: sizeGb,
      VolumeType: type,
      DeleteOnTermination: true,
      ...(iops === undefined ? {} : { Iops: iops }),
      ...(throughput === undefined ? {} : { Throughput: throughput }),
    },
  };
}

/** Zones have names, which differ from account to account, and ids such as `use1-az1`, which do not. */
function zoneOf(zone: string): NonNullable<LaunchRequest['Placement']> {
  return /-az\d+$/.test(zone) ? { AvailabilityZoneId: zone } : { AvailabilityZone: zone };
}
