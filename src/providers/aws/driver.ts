import type { BucketLocation } from '../../domain/bucket-location.ts';
import type { AwsConfig } from '../../domain/config.ts';
import type { Clock } from '../../shared/clock.ts';
import { envVar } from '../../shared/env.ts';
import { SvcError } from '../../shared/errors.ts';
import type { CheckOptions, ControllerTarget, PortableCredentials, ProviderCheck } from '../provider.ts';
import type { ProviderContext } from '../registry.ts';
import type { Launched, VmDriver, VmLaunchOrder, VmMachine, VmPower, VmQuery, VmRef } from '../vm/driver.ts';
import { namedIntents, type NamedIntents } from '../intent-log.ts';
import { type AddressService, OwnAddress } from '../vm/own-address.ts';
import { whileNotYet } from '../vm/patience.ts';
import { checkCredentials, withoutCredentials } from './check.ts';
import type { AwsClients, Ec2 } from './client.ts';
import { credentialFilesStamp, credentialSource, mayHaveCredentials, portableCredentials } from './credentials.ts';
import { awsCodes, awsErrors, hasAwsCode } from './errors.ts';
import { type ImageChoice, chooseImage, usualUser } from './image-choice.ts';
import { ensureControllerRole, removeControllerRole } from './instance-profile.ts';
import { listInstances, rebalanceProbe } from './instances.ts';
import { Launcher } from './launch.ts';
import { QuotaLines } from './quotas.ts';
import { releaseRegion } from './release.ts';

/** Default wait of a check for quotas, ms. */
const quotasMs = 2_000;

/** Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/changing-security-group.html */
const addressService: AddressService = {
  title: 'AWS',
  url: 'https://checkip.amazonaws.com',
  setting: 'aws.ssh_from',
  endpoint: () => envVar('AWS_ENDPOINT_URL_EC2') ?? envVar('AWS_ENDPOINT_URL'),
};

/** Machines are EC2 instances. docs/clouds/aws.md lists the other resources and the required rights. */
export class AwsDriver implements VmDriver<ImageChoice> {
  readonly name = 'aws';
  readonly title = 'AWS';
  readonly abilities = { spot: true, customImages: true, openPorts: true, gpus: true, diskTiers: true };
  readonly traits = {
    mainRegion,
    usualUser,
    instanceForm: /^i-[0-9a-z]+$/,
    labels: 'any',
    once: 'cloud',
    listCovers: 'region',
  } as const;
  readonly errors = awsErrors;
  readonly noticeProbe = rebalanceProbe();
  readonly power: VmPower;
  readonly #clock: Clock;
  readonly #account: AwsAccount;
  /** Owners with a role. */
  readonly #roles: NamedIntents;
  readonly #launcher: Launcher;
  readonly #quotas: QuotaLines;

  constructor(context: ProviderContext) {
    this.#clock = context.clock;
    this.#account = new AwsAccount(context);
    this.#roles = namedIntents(context.paths, this.name, 'roles');
    this.#launcher = new Launcher(context.clock, new OwnAddress(context.clock, addressService));
    this.#quotas = new QuotaLines(context.clock);
    this.power = {
      stop: (ref, signal) => this.#stop(ref, signal),
      start: async ({ region, instanceId }, signal) => void (await (await this.#account.ec2(region, signal)).start(instanceId)),
    };
  }

  settings(): Promise<AwsConfig> {
    return this.#account.config();
  }

  async account({ signal, factsMs = quotasMs }: CheckOptions): Promise<ProviderCheck> {
    const config = await this.#account.config();
    if (!mayHaveCredentials(config.profile)) return withoutCredentials;
    const clients = await this.#account.clients(config);
    const region = config.regions?.[0] ?? mainRegion;
    const quotasOf = (account: string): Promise<string | undefined> =>
      this.#quotas.find(clients, { account, region, waitMs: factsMs }, signal);
    const checked = await checkCredentials(clients, region, credentialSource(config.profile), quotasOf, signal);
    return { ...checked, details: [...checked.details, ['Regions', config.regions?.join(', ') ?? 'all of the catalogue']] };
  }

  readonly chooseImage = chooseImage;

  async launch(order: VmLaunchOrder<ImageChoice>): Promise<Launched> {
    const config = await this.#account.config();
    const clients = await this.#account.clients(config);
    return this.#launcher.launch({ ...order, clients, config, instanceProfile: await this.#instanceProfile(order, clients, config) });
  }

  async list(region: string, query: VmQuery, signal: AbortSignal | undefined): Promise<readonly VmMachine[]> {
    return listInstances(await this.#account.ec2(region, signal), region, query);
  }

  async remove({ region, instanceId }: VmRef, { isJustMade, signal }: Parameters<VmDriver['remove']>[1]): Promise<void> {
    const ec2 = await this.#account.ec2(region, signal);
    const notFound = isJustMade ? ['InvalidInstanceID.NotFound'] : [];
    try {
      await whileNotYet({ clock: this.#clock, signal }, awsCodes(...notFound), () => ec2.terminate(instanceId));
    } catch (error) {
      if (!hasAwsCode(error, 'InvalidInstanceID.NotFound', 'InvalidInstanceID.Malformed')) throw error;
    }
  }

  async reopenSsh(region: string, whose: Parameters<NonNullable<VmDriver['reopenSsh']>>[1]): Promise<boolean> {
    return this.#launcher.reopenSsh(await this.#account.ec2(region, undefined), whose, await this.#account.config());
  }

  async releaseShared(region: string, whose: Parameters<VmDriver['releaseShared']>[1], signal: AbortSignal | undefined): Promise<void> {
    await releaseRegion(await this.#account.ec2(region, signal), region, whose);
  }

  async releaseGlobal(owner: string, signal: AbortSignal | undefined): Promise<void> {
    if (this.#roles.get(owner) === undefined) return;
    const clients = await this.#account.clients(await this.#account.config());
    await awsErrors.guard(`remove the role of ${owner}`, signal, () => removeControllerRole(clients.iam(mainRegion, signal), owner));
    this.#roles.forget(owner);
  }

  async credentials(target: ControllerTarget): Promise<PortableCredentials | undefined> {
    // On AWS, a controller uses its instance role.
    if (target.provider === this.name) return undefined;
    const config = await this.#account.config();
    const clients = await this.#account.clients(config);
    return portableCredentials(await clients.credentials(mainRegion), config.profile, target);
  }

  async bucketLocation(region: string): Promise<BucketLocation> {
    return { kind: 's3', region, profile: (await this.#account.config()).profile };
  }

  async #stop({ region, instanceId }: VmRef, signal: AbortSignal | undefined): Promise<void> {
    try {
      await (await this.#account.ec2(region, signal)).stop(instanceId);
    } catch (error) {
      if (!hasAwsCode(error, 'UnsupportedOperation')) throw error;
      throw new SvcError('SVC_NOT_SUPPORTED', `The machine ${instanceId} in ${region} is a spot machine, which AWS does not stop.`);
    }
  }

  /** With this profile's role, a controller launches replicas without keys. */
  async #instanceProfile(
    { spec, owner, offer, identity, signal }: VmLaunchOrder<ImageChoice>,
    clients: AwsClients,
    config: AwsConfig,
  ): Promise<string | undefined> {
    if (spec.role !== 'controller') return undefined;
    if (config.controllerRole !== undefined) return config.controllerRole;
    this.#roles.record(owner, true);
    return awsErrors.guard('make the role of the controller', signal, () =>
      ensureControllerRole(clients.iam(offer.region, signal), identity.id, owner),
    );
  }
}

/** For calls to global services when the configuration names no region. */
const mainRegion = 'us-east-1';

class AwsAccount {
  readonly #context: Pick<ProviderContext, 'config' | 'fence'>;
  #clients: { readonly by: string; readonly loading: Promise<AwsClients> } | undefined;

  constructor(context: Pick<ProviderContext, 'config' | 'fence'>) {
    this.#context = context;
  }

  async config(): Promise<AwsConfig> {
    return (await this.#context.config()).aws;
  }

  /** Loads the large SDK with the first request. Replaces clients when credentials change, such as a renewed login. */
  clients({ profile }: Pick<AwsConfig, 'profile'>): Promise<AwsClients> {
    const by = JSON.stringify([profile, credentialFilesStamp()]);
    if (this.#clients?.by === by) return this.#clients.loading;
    const loading = import('./client.ts').then((sdk) => new sdk.AwsClients(profile, this.#context.fence));
    this.#clients = { by, loading };
    return loading;
  }

  async ec2(region: string, signal: AbortSignal | undefined): Promise<Ec2> {
    return (await this.clients(await this.config())).ec2(region, signal);
  }
}
