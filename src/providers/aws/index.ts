import { PriceTables } from '../../catalog/price-tables.ts';
import type { BucketPlace } from '../../domain/bucket-place.ts';
import type { Resources } from '../../domain/task.ts';
import type { Remote } from '../../remote/remote.ts';
import { SvcError } from '../../shared/errors.ts';
import type {
  CallOptions,
  ControllerTarget,
  ListedMachine,
  MachineId,
  MachineSpec,
  MachineStatus,
  Offer,
  OfferList,
  OfferOptions,
  PortableCredentials,
  Provider,
  ProviderCheck,
} from '../provider.ts';
import type { ProviderContext } from '../registry.ts';
import { AwsAccount, mainRegion } from './account.ts';
import { checkCredentials, withoutCredentials } from './check.ts';
import { credentialSource, mayHaveCredentials } from './credential-sources.ts';
import { hasAwsCode } from './errors.ts';
import { Estate } from './estate.ts';
import { Fleet } from './fleet.ts';
import { guard } from './guard.ts';
import { HomeFiles } from './home-identity.ts';
import { ensureControllerRole } from './instance-profile.ts';
import { Launcher, type LaunchOrder } from './launch.ts';
import { existingRef, machineIdOf, readMachineId } from './machine-id.ts';
import { awsOffers } from './offers.ts';
import { OwnAddress } from './own-address.ts';
import { whileNotYet } from './patience.ts';
import { portableCredentials } from './portable-credentials.ts';
import type { ReadinessCheck } from './readiness.ts';
import { ownerOf } from './tags.ts';

/** What a test does in place of logging in. */
export interface AwsProviderOptions {
  readonly isReady?: ReadinessCheck;
}

/** What a machine's rights depend on. */
type ProfileParts = Pick<LaunchOrder, 'clients' | 'config' | 'identity' | 'offer' | 'spec' | 'key' | 'signal'>;

/** Amazon Web Services. A machine is an instance of EC2; docs/clouds/aws.md says what else there is and who may do it. */
export class AwsProvider implements Provider {
  readonly name = 'aws';
  readonly capabilities = {
    spot: true,
    stopResume: true,
    customImages: true,
    openPorts: true,
    multiNode: false,
    gpus: true,
    diskTiers: true,
    mountsAnywhere: true,
  };
  readonly #context: ProviderContext;
  readonly #tables: PriceTables;
  readonly #files: HomeFiles;
  readonly #account: AwsAccount;
  readonly #fleet: Fleet;
  readonly #estate: Estate;
  readonly #launcher: Launcher;
  readonly #ownAddress: OwnAddress;

  constructor(context: ProviderContext, options: AwsProviderOptions = {}) {
    this.#context = context;
    this.#tables = new PriceTables(context.paths.catalogDir);
    this.#files = new HomeFiles(context.paths);
    this.#account = new AwsAccount(context, this.#tables);
    this.#fleet = new Fleet({ context, account: this.#account, files: this.#files, isReady: options.isReady });
    this.#estate = new Estate(this.#account, this.#files, this.#fleet.view);
    this.#launcher = new Launcher(context.clock);
    this.#ownAddress = new OwnAddress(context.clock);
  }

  async check({ signal }: CallOptions): Promise<ProviderCheck> {
    signal?.throwIfAborted();
    const config = await this.#account.config();
    if (!mayHaveCredentials(config.profile)) return withoutCredentials;
    const checked = await checkCredentials(
      await this.#account.clients(config),
      config.regions?.[0] ?? mainRegion,
      credentialSource(config.profile),
      signal,
    );
    return { ...checked, details: [...checked.details, ['Regions', config.regions?.join(', ') ?? 'all of the catalogue']] };
  }

  async offers(resources: Resources, { signal, explain = false }: OfferOptions): Promise<OfferList> {
    signal?.throwIfAborted();
    return awsOffers(resources, this.#tables, await this.#account.config(), explain, this.#context.clock.now());
  }

  async bucketPlace(region: string): Promise<BucketPlace> {
    return { kind: 's3', region, profile: (await this.#account.config()).profile };
  }

  async create(offer: Offer, spec: MachineSpec, key: string, { signal }: CallOptions): Promise<MachineId> {
    signal?.throwIfAborted();
    const config = await this.#account.config();
    const clients = await this.#account.clients(config);
    const identity = this.#files.identity();
    this.#files.noteRegion(offer.region);
    const parts = { clients, config, identity, offer, spec, key, signal };
    const { instanceId, user } = await this.#launcher.launch({
      ...parts,
      diskKind: (await this.#tables.disks('aws')).kind(spec.diskTier),
      instanceProfile: await this.#instanceProfile(parts),
      ownAddress: () => this.#ownAddress.find(signal),
    });
    const id = machineIdOf({ region: offer.region, instanceId, user });
    this.#fleet.view.wasMade(id, spec.tags);
    return id;
  }

  async inspect(ids: readonly MachineId[], { signal }: CallOptions): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    signal?.throwIfAborted();
    return this.#fleet.inspect(ids, signal);
  }

  async destroy(id: MachineId, { signal }: CallOptions): Promise<void> {
    const ref = readMachineId(id);
    if (ref === undefined) return;
    await guard(`remove ${ref.instanceId} in ${ref.region}`, signal, async () => {
      const ec2 = await this.#account.ec2(ref.region, signal);
      const notFound = this.#fleet.view.isJustMade(id) ? ['InvalidInstanceID.NotFound'] : [];
      try {
        await whileNotYet({ clock: this.#context.clock, signal }, notFound, () => ec2.terminate(ref.instanceId));
      } catch (error) {
        if (!hasAwsCode(error, 'InvalidInstanceID.NotFound', 'InvalidInstanceID.Malformed')) throw error;
      }
    });
    await this.#fleet.forget(id);
  }

  async list(tags: Readonly<Record<string, string>>, { signal }: CallOptions): Promise<readonly ListedMachine[]> {
    signal?.throwIfAborted();
    return this.#estate.list(tags, signal);
  }

  remote(id: MachineId): Remote {
    return this.#fleet.remote(id);
  }

  async stop(id: MachineId, { signal }: CallOptions): Promise<void> {
    const ref = existingRef(id);
    await guard(`stop ${ref.instanceId} in ${ref.region}`, signal, async () => {
      try {
        await (await this.#account.ec2(ref.region, signal)).stop(ref.instanceId);
      } catch (error) {
        if (!hasAwsCode(error, 'UnsupportedOperation')) throw error;
        throw new SvcError(
          'SVC_NOT_SUPPORTED',
          `The machine ${ref.instanceId} in ${ref.region} is a spot machine, which AWS does not stop.`,
        );
      }
    });
    this.#fleet.view.willChange(id);
    this.#fleet.mustAnswerAgain(id);
  }

  async start(id: MachineId, { signal }: CallOptions): Promise<void> {
    const ref = existingRef(id);
    this.#fleet.mustAnswerAgain(id);
    await guard(`start ${ref.instanceId} in ${ref.region}`, signal, async () =>
      (await this.#account.ec2(ref.region, signal)).start(ref.instanceId),
    );
    this.#fleet.view.willChange(id);
  }

  async release(ownerKey: string, { signal }: CallOptions): Promise<void> {
    signal?.throwIfAborted();
    await this.#estate.release(ownerKey, signal);
  }

  async credentials(target: ControllerTarget, { signal }: CallOptions): Promise<PortableCredentials | undefined> {
    const secret = target.key === undefined ? [] : [this.#files.secretForController(target.key)];
    // A machine of AWS has a role for it.
    if (target.provider === this.name)
      return secret.length === 0 ? undefined : { summary: 'a secret of its own', files: secret, environment: {} };
    const config = await this.#account.config();
    const clients = await this.#account.clients(config);
    const keys = await guard('tell the credentials', signal, () => clients.credentials(mainRegion));
    const portable = portableCredentials(keys, config.profile, target);
    return { ...portable, files: [...portable.files, ...secret] };
  }

  async #instanceProfile({ clients, config, identity, spec, key, offer, signal }: ProfileParts): Promise<string | undefined> {
    if (spec.role !== 'controller') return undefined;
    if (config.controllerRole !== undefined) return config.controllerRole;
    const owner = ownerOf(spec, key);
    this.#files.noteRole(owner);
    return guard('make the role of the controller', signal, () =>
      ensureControllerRole(clients.iam(offer.region, signal), identity.id, owner),
    );
  }
}
