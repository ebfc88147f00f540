import type { DiskKind } from '../../catalog/disk-prices.ts';
import type { AwsConfig } from '../../domain/config.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { PlaceRefusal } from '../place-refusal.ts';
import type { MachineSpec, Offer } from '../provider.ts';
import type { AwsClients, Ec2, Instance } from './client.ts';
import { rootDisk } from './disk.ts';
import { hasAwsCode, refusalOf } from './errors.ts';
import type { HomeIdentity } from './home-identity.ts';
import { chooseImage, type Image } from './image-choice.ts';
import { findImage } from './images.ts';
import { openingsFor } from './ingress.ts';
import { ensureKeyPair, keyPairName } from './key-pair.ts';
import { launchRequest, type LaunchParts } from './launch-request.ts';
import { statusOf } from './machine-status.ts';
import { findNetwork, subnetsToTry, type Network } from './network.ts';
import { untilFound, whileNotYet, whileUnanswered, type Patience } from './patience.ts';
import { Remembered } from './remembered.ts';
import { ensureGroup } from './security-group.ts';
import { livingStates, tagFilter } from './tag-filter.ts';
import { clientToken, ownerOf, ownTags } from './tags.ts';
import { userData } from './user-data.ts';

/** A machine that is to be had. */
export interface LaunchOrder {
  readonly clients: AwsClients;
  readonly config: AwsConfig;
  readonly identity: HomeIdentity;
  readonly offer: Offer;
  readonly spec: MachineSpec;
  readonly key: string;
  readonly diskKind: DiskKind | undefined;
  readonly instanceProfile: string | undefined;
  /** The address from which this machine connects. */
  readonly ownAddress: () => Promise<string>;
  readonly signal: AbortSignal | undefined;
}

/** A machine that was had. */
export interface Launched {
  readonly instanceId: string;
  readonly user: string;
}

/** Images change every few weeks; a group of launches is to use the same, ms. */
const imageRememberedMs = 600_000;
const networkRememberedMs = 60_000;

/** How many machines of one key may have come and gone at one place. */
const maxGenerations = 20;

/** Asks for machines. Keeps what many of them have in common. */
export class Launcher {
  readonly #clock: Clock;
  readonly #images: Remembered<Image>;
  readonly #networks: Remembered<Network>;
  /** Where a request of a key was left without an answer: it is repeated there before any other subnet is tried. */
  readonly #doubtful = new Map<string, string>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#images = new Remembered(clock, imageRememberedMs);
    this.#networks = new Remembered(clock, networkRememberedMs);
  }

  /** The machine of a key: the one there is, or a new one. Throws refusals and failures as `Provider.create` does. */
  async launch(order: LaunchOrder): Promise<Launched> {
    const { clients, offer, signal } = order;
    const ec2 = clients.ec2(offer.region, signal);
    try {
      const there = await findByKey(ec2, order);
      if (there !== undefined) return launched(there);
      const { network, parts } = await this.#prepare(order, ec2);
      if (network.subnets === undefined) return await this.#ask(ec2, order, { ...parts, subnetId: undefined });
      return await this.#askSubnets(ec2, order, network, parts);
    } catch (error) {
      signal?.throwIfAborted();
      // Prices and images may have changed: what is remembered must not make a refusal last.
      if (hasAwsCode(error, 'InvalidAMIID.NotFound', 'InvalidAMIID.Unavailable')) this.#images.clear();
      if (hasAwsCode(error, 'InvalidSubnetID.NotFound', 'InvalidVpcID.NotFound')) this.#networks.clear();
      throw refusalOf(error, offer);
    }
  }

  async #prepare(order: LaunchOrder, ec2: Ec2): Promise<{ network: Network; parts: Omit<LaunchParts, 'clientToken' | 'subnetId'> }> {
    const { clients, config, identity, offer, spec, key, signal } = order;
    const isPublic = !config.useInternalIps;
    const choice = chooseImage(spec.imageId, offer);
    if (typeof choice === 'string') {
      throw new PlaceRefusal('unsupported', 'region', `AWS gives no ${offer.instanceType} in ${offer.region}: ${choice}.`);
    }
    const [network, image] = await Promise.all([
      this.#networks.get(JSON.stringify([offer.region, config.profile, config.vpc, isPublic]), () =>
        findNetwork(ec2, offer.region, config.vpc, isPublic),
      ),
      this.#images.get(JSON.stringify([offer.region, config.profile, choice, offer.instanceType]), () =>
        findImage(choice, { clients, ec2, offer, signal }),
      ),
      ensureKeyPair(ec2, identity),
    ]);
    const openings = openingsFor(spec, await sshFrom(order, network));
    const owner = ownerOf(spec, key);
    const groupId = await ensureGroup(ec2, { home: identity.id, owner, vpcId: network.vpcId }, openings, this.#patience(signal));
    const parts = {
      offer,
      spec,
      key,
      home: identity.id,
      image,
      disk: rootDisk(spec.diskSizeGb, order.diskKind, image.sizeGb),
      keyName: keyPairName(identity),
      groupId,
      publicAddress: isPublic,
      userData: userData(identity.hostKey(key)),
      instanceProfile: order.instanceProfile,
    };
    return { network, parts };
  }

  /** A subnet is in one zone: where AWS does not choose the zone, we go through them. */
  async #askSubnets(
    ec2: Ec2,
    order: LaunchOrder,
    network: Network,
    parts: Omit<LaunchParts, 'clientToken' | 'subnetId'>,
  ): Promise<Launched> {
    const { offer, key } = order;
    const doubtful = this.#doubtful.get(key);
    const inOrder = subnetsToTry(network.subnets ?? [], offer.zone, Number.parseInt(clientToken(key, [], 0).slice(-6), 16));
    const subnets = inOrder.toSorted((a, b) => Number(b.id === doubtful) - Number(a.id === doubtful));
    let refused: unknown = new PlaceRefusal(
      'unsupported',
      'zone',
      `The VPC '${order.config.vpc}' has no subnet in the zone ${offer.zone} of ${offer.region}.`,
    );
    for (const { id } of subnets) {
      try {
        this.#doubtful.set(key, id);
        const machine = await this.#ask(ec2, order, { ...parts, subnetId: id });
        this.#doubtful.delete(key);
        return machine;
      } catch (error) {
        const refusal = refusalOf(error, offer);
        if (!(refusal instanceof PlaceRefusal)) throw error;
        this.#doubtful.delete(key);
        if (refusal.refusal !== 'capacity' && refusal.refusal !== 'unsupported') throw error;
        refused = error;
      }
    }
    throw refused;
  }

  /** One request, again under the next token for as long as its machine is one that is gone. */
  async #ask(ec2: Ec2, order: LaunchOrder, parts: Omit<LaunchParts, 'clientToken'>): Promise<Launched> {
    const { offer, key, identity, signal } = order;
    const request = [offer.region, offer.zone ?? '', offer.instanceType, offer.spot ? 'spot' : 'on-demand', parts.subnetId ?? ''];
    for (let generation = 0; generation < maxGenerations; generation += 1) {
      const input = launchRequest({ ...parts, clientToken: clientToken(key, request, generation) });
      try {
        const instance = await this.#run(ec2, input, identity, signal);
        if (instance?.InstanceId !== undefined && statusOf(instance).state !== 'gone')
          return { instanceId: instance.InstanceId, user: parts.image.user };
      } catch (error) {
        if (hasAwsCode(error, 'IdempotentInstanceTerminated')) continue;
        if (!hasAwsCode(error, 'IdempotentParameterMismatch')) throw error;
        // The same machine was asked for with, say, an older image: that request counts. It may take a while to be seen.
        const there = await untilFound(this.#patience(signal), () => findByToken(ec2, input.ClientToken ?? ''));
        if (there === undefined) throw unseen(offer);
        if (statusOf(there).state !== 'gone') return launched(there);
      }
    }
    throw unseen(offer);
  }

  #run(
    ec2: Ec2,
    input: Parameters<Ec2['runInstances']>[0],
    identity: HomeIdentity,
    signal: AbortSignal | undefined,
  ): Promise<Instance | undefined> {
    // What was made a moment ago is not known everywhere in the region. A key pair may also have been removed by another process just now.
    return whileNotYet(this.#patience(signal), ['InvalidGroup.NotFound', 'InvalidKeyPair.NotFound', unknownProfile], async () => {
      try {
        return await whileUnanswered(this.#patience(signal), () => ec2.runInstances(input));
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

/** EC2 has no code of its own for an instance profile that IAM has not told it about yet. */
const unknownProfile = 'UnknownInstanceProfile';

async function findByKey(ec2: Ec2, { identity, key }: Pick<LaunchOrder, 'identity' | 'key'>): Promise<Instance | undefined> {
  const [instance] = await ec2.instances([tagFilter(ownTags.home, identity.id), tagFilter(ownTags.key, key), livingStates]);
  return instance;
}

async function findByToken(ec2: Ec2, token: string): Promise<Instance | undefined> {
  const [instance] = await ec2.instances([{ Name: 'client-token', Values: [token] }]);
  return instance;
}

function unseen({ instanceType, region }: Offer): SvcError {
  return new SvcError('SVC_PLACE_FAILED', `AWS does not show the ${instanceType} that it gave in ${region} before.`);
}

function launched({ InstanceId, Tags = [] }: Instance): Launched {
  if (InstanceId === undefined) throw new SvcError('SVC_PLACE_FAILED', 'AWS shows a machine without an id.');
  return { instanceId: InstanceId, user: Tags.find(({ Key }) => Key === ownTags.user)?.Value ?? 'ubuntu' };
}

async function sshFrom({ config, ownAddress, spec }: LaunchOrder, network: Network): Promise<readonly string[]> {
  if (config.sshFrom !== undefined) return config.sshFrom;
  // Private addresses are reached from within the network only.
  if (config.useInternalIps) return network.cidrs;
  return spec.role === 'replica' && spec.clients.length > 0 ? [] : [await ownAddress()];
}
