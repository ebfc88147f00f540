import type { AwsConfig } from '../../domain/config.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { ProviderRefusal } from '../provider-refusal.ts';
import type { MachineSpec, Offer } from '../provider.ts';
import type { Launched, VmLaunchOrder } from '../vm/driver.ts';
import { asCidr, openingsFor, sshOpenings, sshSources } from '../vm/ingress.ts';
import type { OwnAddress } from '../vm/own-address.ts';
import { type Patience, untilFound, whileNotYet, whileUnanswered } from '../vm/patience.ts';
import { Remembered } from '../vm/remembered.ts';
import { type Tags, displayName, ownTags } from '../vm/tags.ts';
import type { AwsClients, Ec2, Instance, LaunchRequest } from './client.ts';
import { awsCodes, awsErrors, hasAwsCode } from './errors.ts';
import { type Image, type ImageChoice, usualUser } from './image-choice.ts';
import { findImage } from './images.ts';
import { ensureKeyPair, keyPairName } from './key-pair.ts';
import { statusOf } from './machine-status.ts';
import { type Network, findNetwork, subnetsToTry } from './network.ts';
import { ensureGroup, groupMissing, openInGroups } from './security-group.ts';
import { clientToken, readTagList, tagList } from './tags.ts';
import type { DiskKind } from '../../catalog/disk-prices.ts';

interface AwsLaunchOrder extends VmLaunchOrder<ImageChoice> {
  readonly clients: AwsClients;
  readonly config: AwsConfig;
  readonly instanceProfile: string | undefined;
}

/** `spent`: tokens of the key's earlier launches, whose machines are gone. */
interface AskedLaunch {
  readonly order: AwsLaunchOrder;
  readonly spent: ReadonlySet<string>;
}

/** ms. Images change every few weeks. */
const imageRememberedMs = 600_000;
const networkRememberedMs = 60_000;

const maxGenerations = 20;

/** Launches instances. Caches what launches share. */
export class Launcher {
  readonly #clock: Clock;
  readonly #ownAddress: OwnAddress;
  readonly #images: Remembered<Image>;
  readonly #networks: Remembered<Network>;
  /** Subnet of a key's unanswered request. The request is repeated there before another subnet is tried. */
  readonly #doubtful = new Map<string, string>();

  constructor(clock: Clock, ownAddress: OwnAddress) {
    this.#clock = clock;
    this.#ownAddress = ownAddress;
    this.#images = new Remembered(clock, imageRememberedMs);
    this.#networks = new Remembered(clock, networkRememberedMs);
  }

  async launch(order: AwsLaunchOrder): Promise<Launched> {
    const ec2 = order.clients.ec2(order.offer.region, order.signal);
    try {
      const { network, parts } = await this.#prepare(order, ec2);
      const asked = { order, spent: new Set(order.former.flatMap(({ requestToken }) => requestToken ?? [])) };
      if (network.subnets === undefined) return await this.#ask(ec2, asked, { ...parts, subnetId: undefined });
      return await this.#askSubnets(ec2, asked, network, parts);
    } catch (error) {
      // A cached image or network may be outdated, and must not prolong a refusal.
      if (hasAwsCode(error, 'InvalidAMIID.NotFound', 'InvalidAMIID.Unavailable')) this.#images.clear();
      if (hasAwsCode(error, 'InvalidSubnetID.NotFound', 'InvalidVpcID.NotFound')) this.#networks.clear();
      throw error;
    }
  }

  /** See `VmDriver.reopenSsh`. With private addresses, SSH is open to the whole network. */
  async reopenSsh(ec2: Ec2, whose: { readonly home: string; readonly owner: string }, config: AwsConfig): Promise<boolean> {
    if (config.useInternalIps) return false;
    if (config.sshFrom !== undefined) return openInGroups(ec2, whose, { openings: sshOpenings(config.sshFrom), ownCidr: undefined });
    const ownCidr = asCidr(await this.#ownAddress.find(undefined, { isFresh: true }));
    return openInGroups(ec2, whose, { openings: sshOpenings([ownCidr]), ownCidr });
  }

  async #prepare(order: AwsLaunchOrder, ec2: Ec2): Promise<{ network: Network; parts: Omit<LaunchParts, 'clientToken' | 'subnetId'> }> {
    const { clients, config, identity, image: choice, offer, owner, spec, signal } = order;
    const isPublic = !config.useInternalIps;
    const [network, image] = await Promise.all([
      this.#networks.get(JSON.stringify([offer.region, config.profile, config.vpc, isPublic]), () =>
        findNetwork(ec2, offer.region, config.vpc, isPublic),
      ),
      this.#images.get(JSON.stringify([offer.region, config.profile, choice, offer.instanceType]), () =>
        findImage(choice, { clients, ec2, offer, signal }),
      ),
      ensureKeyPair(ec2, identity),
    ]);
    let ownCidr: string | undefined;
    const ownAddress = async (): Promise<string> => {
      const address = await this.#ownAddress.find(signal);
      ownCidr = asCidr(address);
      return address;
    };
    const sources = await sshSources(spec, config, { privateRanges: network.cidrs, ownAddress });
    const group = { home: identity.id, owner, vpcId: network.vpcId };
    const parts = {
      offer,
      spec,
      tags: order.tags(image.user),
      image,
      disk: rootDisk(spec.diskSizeGb, order.diskKind, image.sizeGb),
      keyName: keyPairName(identity),
      groupId: await ensureGroup(ec2, group, { openings: openingsFor(spec, sources), ownCidr }, this.#patience(signal)),
      publicAddress: isPublic,
      userData: order.userData,
      instanceProfile: order.instanceProfile,
    };
    return { network, parts };
  }

  /** A subnet belongs to one zone. Where AWS does not choose the zone, svc tries one subnet after another. */
  async #askSubnets(
    ec2: Ec2,
    asked: AskedLaunch,
    network: Network,
    parts: Omit<LaunchParts, 'clientToken' | 'subnetId'>,
  ): Promise<Launched> {
    const { order } = asked;
    const { offer, key } = order;
    const doubtful = this.#doubtful.get(key);
    const inOrder = subnetsToTry(network.subnets ?? [], offer.zone, Number.parseInt(clientToken(key, [], 0).slice(-6), 16));
    const subnets = inOrder.toSorted((a, b) => Number(b.id === doubtful) - Number(a.id === doubtful));
    let refused: unknown = new ProviderRefusal(
      'unsupported',
      'zone',
      `The VPC '${order.config.vpc}' has no subnet in the zone ${offer.zone} of ${offer.region}.`,
    );
    for (const { id } of subnets) {
      try {
        this.#doubtful.set(key, id);
        const machine = await this.#ask(ec2, asked, { ...parts, subnetId: id });
        this.#doubtful.delete(key);
        return machine;
      } catch (error) {
        const refusal = awsErrors.refusalOf(error, offer);
        if (!(refusal instanceof ProviderRefusal)) throw error;
        this.#doubtful.delete(key);
        if (refusal.refusal !== 'capacity' && refusal.refusal !== 'unsupported') throw error;
        refused = error;
      }
    }
    throw refused;
  }

  /** Uses the first token whose machine may still live. A new machine that is already gone counts as a refusal. */
  async #ask(ec2: Ec2, { order, spent }: AskedLaunch, parts: Omit<LaunchParts, 'clientToken'>): Promise<Launched> {
    const { offer, key, signal } = order;
    const request = [offer.region, offer.zone ?? '', offer.instanceType, offer.spot ? 'spot' : 'on-demand', parts.subnetId ?? ''];
    for (let generation = 0; generation < maxGenerations; generation += 1) {
      const input = launchRequest({ ...parts, clientToken: clientToken(key, request, generation) });
      if (spent.has(input.ClientToken ?? '')) continue;
      try {
        const instance = await this.#run(ec2, input, order);
        if (instance?.InstanceId !== undefined) return { instanceId: instance.InstanceId, user: parts.image.user };
      } catch (error) {
        if (hasAwsCode(error, 'IdempotentInstanceTerminated')) continue;
        if (!hasAwsCode(error, 'IdempotentParameterMismatch')) throw error;
        // The token was used before, for example with an older image. Its machine may not be visible at once.
        const existing = await untilFound(this.#patience(signal), () => findByToken(ec2, input.ClientToken ?? ''));
        if (existing === undefined) throw unseen(offer);
        if (statusOf(existing, offer.region).state !== 'gone') return launched(existing);
      }
    }
    throw unseen(offer);
  }

  #run(
    ec2: Ec2,
    input: Parameters<Ec2['runInstances']>[0],
    { identity, signal }: Pick<AwsLaunchOrder, 'identity' | 'signal'>,
  ): Promise<Instance | undefined> {
    const patience = this.#patience(signal);
    // New resources are not yet known everywhere in the region. Another process may have just removed the key pair.
    return whileNotYet(patience, awsCodes(...groupMissing, 'InvalidKeyPair.NotFound', unknownProfile), async () => {
      try {
        return await whileUnanswered(
          patience,
          (error) => awsErrors.isWorthRepeating(error),
          () => ec2.runInstances(input),
        );
      } catch (error) {
        if (hasAwsCode(error, 'InvalidKeyPair.NotFound')) await ensureKeyPair(ec2, identity);
        if (error instanceof Error && hasAwsCode(error, 'InvalidParameterValue') && /instance profile/i.test(error.message))
          error.name = unknownProfile;
        throw error;
      }
    });
  }

  #patience(signal: AbortSignal | undefined): Patience {
    return { clock: this.#clock, signal };
  }
}

/** EC2 has no separate code for an instance profile that IAM has not propagated yet. */
const unknownProfile = 'UnknownInstanceProfile';

async function findByToken(ec2: Ec2, token: string): Promise<Instance | undefined> {
  const [instance] = await ec2.instances([{ Name: 'client-token', Values: [token] }]);
  return instance;
}

function unseen({ instanceType, region }: Offer): SvcError {
  return new SvcError('SVC_PLACE_FAILED', `AWS does not show the ${instanceType} that it gave in ${region} before.`);
}

function launched({ InstanceId, Tags }: Instance): Launched {
  if (InstanceId === undefined) throw new SvcError('SVC_PLACE_FAILED', 'AWS shows a machine without an id.');
  return { instanceId: InstanceId, user: readTagList(Tags)[ownTags.user] ?? usualUser };
}

/** Parts of a launch request. */
export interface LaunchParts {
  readonly offer: Offer;
  readonly spec: MachineSpec;
  readonly tags: Tags;
  readonly image: Image;
  readonly disk: RootDisk;
  readonly keyName: string;
  readonly groupId: string;
  /** Undefined: AWS chooses one of the default VPC, in the offer's zone if it names one. */
  readonly subnetId: string | undefined;
  readonly publicAddress: boolean;
  readonly userData: string;
  readonly instanceProfile: string | undefined;
  readonly clientToken: string;
}

/** Equal parts must give equal requests: AWS compares requests with the same token. */
export function launchRequest(parts: LaunchParts): LaunchRequest {
  const { offer, spec, image } = parts;
  const tags = tagList({ Name: displayName(spec), ...parts.tags });
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
    // The metadata service requires a token, and containers cannot reach it.
    MetadataOptions: { HttpTokens: 'required', HttpPutResponseHopLimit: 1, HttpEndpoint: 'enabled' },
    // A replica that shuts itself down must cost nothing. A controller must start again with its disk.
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

/**
 * A subnet has its own default for public addresses, so they are set explicitly, at a network interface. Groups and
 * subnet belong there too: AWS refuses them beside an interface.
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceNetworkInterfaceSpecification.html
 */
function placement({ offer, subnetId, groupId, publicAddress }: LaunchParts): Partial<LaunchRequest> {
  const card = { DeviceIndex: 0, Groups: [groupId], AssociatePublicIpAddress: publicAddress, DeleteOnTermination: true };
  if (subnetId !== undefined) return { NetworkInterfaces: [{ ...card, SubnetId: subnetId }] };
  return { NetworkInterfaces: [card], ...(offer.zone === undefined ? {} : { Placement: zoneOf(offer.zone) }) };
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

/** A zone's name differs between accounts; its id, such as `use1-az1`, does not. */
function zoneOf(zone: string): NonNullable<LaunchRequest['Placement']> {
  return /-az\d+$/.test(zone) ? { AvailabilityZoneId: zone } : { AvailabilityZone: zone };
}

interface RootDisk {
  readonly sizeGb: number;
  readonly type: 'standard' | 'gp3' | 'io2';
  /** Per second; undefined where the type has no such parameter. */
  readonly iops: number | undefined;
  /** MiB per second. */
  readonly throughput: number | undefined;
}

/**
 * A disk within EBS's limits, not smaller than the image. gp3: 3,000 operations to 500 per GB, and at most a quarter of
 * that in MiB/s. io2: 1,000 operations per GB. Throws a `ProviderRefusal` for an unknown kind.
 * Source: https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html
 */
export function rootDisk(requestedGb: number, kind: DiskKind | undefined, imageGb: number): RootDisk {
  const sizeGb = Math.max(Math.ceil(requestedGb), imageGb, 4);
  const { volume = 'gp3', iops, throughputMbs } = kind ?? {};
  if (volume === 'gp3') {
    const operations = Math.max(3_000, Math.min(iops ?? 3_000, 500 * sizeGb));
    return { sizeGb, type: 'gp3', iops: operations, throughput: Math.max(125, Math.min(throughputMbs ?? 125, Math.floor(operations / 4))) };
  }
  if (volume === 'io2') return { sizeGb, type: 'io2', iops: Math.min(iops ?? 1_000, 1_000 * sizeGb), throughput: undefined };
  if (volume === 'standard') return { sizeGb, type: 'standard', iops: undefined, throughput: undefined };
  throw new ProviderRefusal('unsupported', 'provider', `The table of disks names a kind of EBS volume that svc does not know: ${volume}.`);
}
