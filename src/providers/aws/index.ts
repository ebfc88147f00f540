import { regionsOf } from '../../catalog/price-table.ts';
import { PriceTables } from '../../catalog/price-tables.ts';
import type { BucketPlace } from '../../domain/bucket-place.ts';
import type { AwsConfig } from '../../domain/config.ts';
import type { Resources } from '../../domain/task.ts';
import type { Remote } from '../../remote/remote.ts';
import { SshRemote } from '../../remote/ssh/index.ts';
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
import { checkCredentials, withoutCredentials } from './check.ts';
import type { AwsClients, Ec2 } from './client.ts';
import { inEveryRegion } from './controller-heritage.ts';
import { credentialFilesStamp, credentialSource, mayHaveCredentials } from './credential-sources.ts';
import { hasAwsCode } from './errors.ts';
import { guard } from './guard.ts';
import { HomeFiles, type HomeIdentity } from './home-identity.ts';
import { ensureControllerRole, removeControllerRole } from './instance-profile.ts';
import { InstanceView, type InstanceSight } from './instance-view.ts';
import { Launcher } from './launch.ts';
import { machineIdOf, readMachineId, usualUser, type InstanceRef } from './machine-id.ts';
import { hostOf, machineBaseDir, sshTarget } from './machine-remote.ts';
import { awsOffers } from './offers.ts';
import { OwnAddress } from './own-address.ts';
import { whileNotYet } from './patience.ts';
import { portableCredentials } from './portable-credentials.ts';
import { RebalanceWatch } from './rebalance.ts';
import { Readiness, type ReadinessCheck } from './readiness.ts';
import { releaseRegion } from './release.ts';
import { livingStates, ofHome, tagFilter } from './tag-filter.ts';
import { callersTags, ownerOf, ownTags } from './tags.ts';

/** Where global services are asked when the configuration names no region. */
const mainRegion = 'us-east-1';

/** How old an address may be when somebody logs in, ms: it changes with a stop and a start only, and we see those. */
const addressMs = 30_000;

/** What a test does in place of logging in. */
export interface AwsProviderOptions {
  readonly isReady?: ReadinessCheck;
}

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
  readonly #view: InstanceView;
  readonly #launcher: Launcher;
  readonly #ownAddress: OwnAddress;
  readonly #readiness: Readiness;
  readonly #rebalance: RebalanceWatch;
  #clients: { readonly by: string; readonly loading: Promise<AwsClients> } | undefined;
  readonly #remotes = new Map<MachineId, SshRemote>();

  constructor(context: ProviderContext, options: AwsProviderOptions = {}) {
    this.#context = context;
    this.#tables = new PriceTables(context.paths.catalogDir);
    this.#files = new HomeFiles(context.paths);
    this.#view = new InstanceView(context.clock);
    this.#launcher = new Launcher(context.clock);
    this.#ownAddress = new OwnAddress(context.clock);
    this.#readiness = new Readiness(options.isReady ?? ((id) => this.#logsIn(id)));
    this.#rebalance = new RebalanceWatch(context.clock);
  }

  async check({ signal }: CallOptions): Promise<ProviderCheck> {
    signal?.throwIfAborted();
    const config = await this.#config();
    if (!mayHaveCredentials(config.profile)) return withoutCredentials;
    const checked = await checkCredentials(
      await this.#sdk(config),
      config.regions?.[0] ?? mainRegion,
      credentialSource(config.profile),
      signal,
    );
    return { ...checked, details: [...checked.details, ['Regions', config.regions?.join(', ') ?? 'all of the catalogue']] };
  }

  async offers(resources: Resources, { signal, explain = false }: OfferOptions): Promise<OfferList> {
    signal?.throwIfAborted();
    return awsOffers(resources, this.#tables, await this.#config(), explain, this.#context.clock.now());
  }

  async bucketPlace(region: string): Promise<BucketPlace> {
    return { kind: 's3', region, profile: (await this.#config()).profile };
  }

  async create(offer: Offer, spec: MachineSpec, key: string, { signal }: CallOptions): Promise<MachineId> {
    signal?.throwIfAborted();
    const config = await this.#config();
    const clients = await this.#sdk(config);
    const identity = this.#files.identity();
    this.#files.noteRegion(offer.region);
    const { instanceId, user } = await this.#launcher.launch({
      clients,
      config,
      identity,
      offer,
      spec,
      key,
      diskKind: (await this.#tables.disks('aws')).kind(spec.diskTier),
      instanceProfile: await this.#instanceProfile(clients, config, identity, spec, key, offer.region, signal),
      ownAddress: () => this.#ownAddress.find(signal),
      signal,
    });
    const id = machineIdOf({ region: offer.region, instanceId, user });
    this.#view.wasMade(id, spec.tags);
    return id;
  }

  async inspect(ids: readonly MachineId[], { signal }: CallOptions): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    signal?.throwIfAborted();
    const config = await this.#config();
    const refs = ids.map((id) => ({ id, ref: readMachineId(id) }));
    const statuses = new Map<MachineId, MachineStatus>(ids.map((id) => [id, { state: 'gone', reason: 'unknown' }]));
    const regions = Map.groupBy(
      refs.flatMap(({ id, ref }) => (ref === undefined ? [] : [{ id, ref }])),
      ({ ref }) => ref.region,
    );
    const looks = await Promise.allSettled(
      [...regions].map(async ([region, machines]) => {
        const sights = await this.#look(region, new Map(machines.map(({ id, ref }) => [id, ref])), signal);
        for (const [id, sight] of sights) statuses.set(id, this.#status(id, sight, config));
      }),
    );
    const failed = looks.find((look) => look.status === 'rejected');
    // A region that does not answer must not hide what the others say; of its own machines what was last seen is told, if anything was.
    if (failed !== undefined) {
      const silent = [...regions].flatMap(([, machines], index) => (looks[index]?.status === 'rejected' ? machines : []));
      for (const { id } of silent) {
        const sight = this.#view.lastSight(id, Number.POSITIVE_INFINITY);
        if (sight === undefined || looks.length === 1) throw failed.reason;
        statuses.set(id, this.#status(id, sight, config));
      }
    }
    return statuses;
  }

  async destroy(id: MachineId, { signal }: CallOptions): Promise<void> {
    const ref = readMachineId(id);
    if (ref === undefined) return;
    await guard(`remove ${ref.instanceId} in ${ref.region}`, signal, async () => {
      const ec2 = await this.#ec2(ref.region, signal);
      const notFound = this.#view.isJustMade(id) ? ['InvalidInstanceID.NotFound'] : [];
      try {
        await whileNotYet({ clock: this.#context.clock, signal }, notFound, () => ec2.terminate(ref.instanceId));
      } catch (error) {
        if (!hasAwsCode(error, 'InvalidInstanceID.NotFound', 'InvalidInstanceID.Malformed')) throw error;
      }
    });
    this.#view.wasRemoved(id);
    this.#readiness.forget(id);
    this.#rebalance.forget(id);
    await this.#forgetRemote(id);
  }

  async list(tags: Readonly<Record<string, string>>, { signal }: CallOptions): Promise<readonly ListedMachine[]> {
    signal?.throwIfAborted();
    const controller = this.#controller(tags['svc-owner']);
    const identity = controller ?? this.#files.existing();
    // What this home has is where this home asked: nowhere, before it first did.
    if (identity === undefined) return [];
    const filters = [
      ...ofHome(identity.id, undefined),
      livingStates,
      ...Object.entries(tags).map(([name, value]) => tagFilter(name, value)),
    ];
    const list = async (ec2: Ec2, region: string): Promise<readonly ListedMachine[]> =>
      (await ec2.instances(filters)).flatMap(({ InstanceId, Tags = [] }): ListedMachine[] => {
        if (InstanceId === undefined) return [];
        const user = Tags.find(({ Key }) => Key === ownTags.user)?.Value ?? usualUser;
        return [{ id: machineIdOf({ region, instanceId: InstanceId, user }), tags: callersTags(Tags) }];
      });
    const found =
      controller === undefined
        ? await this.#inRegions(this.#files.regions(), 'list machines in', signal, list)
        : await this.#everywhere('list machines in', signal, list);
    const listed = new Map(found.flat().map((machine) => [machine.id, machine]));
    for (const made of this.#view.justMade(tags)) if (!listed.has(made.id)) listed.set(made.id, made);
    return [...listed.values()].filter(({ id }) => !this.#view.isRemoved(id));
  }

  remote(id: MachineId): Remote {
    return this.#remote(id);
  }

  async stop(id: MachineId, { signal }: CallOptions): Promise<void> {
    const ref = existingRef(id);
    await guard(`stop ${ref.instanceId} in ${ref.region}`, signal, async () => {
      try {
        await (await this.#ec2(ref.region, signal)).stop(ref.instanceId);
      } catch (error) {
        if (!hasAwsCode(error, 'UnsupportedOperation')) throw error;
        throw new SvcError(
          'SVC_NOT_SUPPORTED',
          `The machine ${ref.instanceId} in ${ref.region} is a spot machine, which AWS does not stop.`,
        );
      }
    });
    this.#view.willChange(id);
    this.#readiness.forget(id);
  }

  async start(id: MachineId, { signal }: CallOptions): Promise<void> {
    const ref = existingRef(id);
    this.#readiness.forget(id);
    await guard(`start ${ref.instanceId} in ${ref.region}`, signal, async () =>
      (await this.#ec2(ref.region, signal)).start(ref.instanceId),
    );
    this.#view.willChange(id);
  }

  async release(ownerKey: string, { signal }: CallOptions): Promise<void> {
    signal?.throwIfAborted();
    const identity = this.#files.existing();
    if (identity === undefined) return;
    await this.#inRegions(this.#files.regions(), `remove what belongs to ${ownerKey} in`, signal, (ec2, region) =>
      releaseRegion(ec2, region, identity, ownerKey),
    );
    const controller = this.#controller(ownerKey);
    if (controller !== undefined) {
      const release = (ec2: Ec2, region: string): Promise<void> => releaseRegion(ec2, region, controller, undefined);
      await this.#everywhere(`remove what the controller ${ownerKey} made in`, signal, release);
      this.#files.forgetController(ownerKey);
    }
    if (!this.#files.hasRole(ownerKey)) return;
    const clients = await this.#sdk(await this.#config());
    await guard(`remove the role of ${ownerKey}`, signal, () => removeControllerRole(clients.iam(mainRegion, signal), ownerKey));
    this.#files.forgetRole(ownerKey);
  }

  async credentials(target: ControllerTarget, { signal }: CallOptions): Promise<PortableCredentials | undefined> {
    const secret = target.key === undefined ? [] : [this.#files.secretForController(target.key)];
    // A machine of AWS has a role for it.
    if (target.provider === this.name)
      return secret.length === 0 ? undefined : { summary: 'a secret of its own', files: secret, environment: {} };
    const config = await this.#config();
    const clients = await this.#sdk(config);
    const keys = await guard('tell the credentials', signal, () => clients.credentials(mainRegion));
    const portable = portableCredentials(keys, config.profile, target);
    return { ...portable, files: [...portable.files, ...secret] };
  }

  async #config(): Promise<AwsConfig> {
    return (await this.#context.config()).aws;
  }

  /** The SDK is large: it is loaded when AWS is first asked. Clients are made anew when credentials changed, so that a renewed login counts at once. */
  #sdk({ profile }: Pick<AwsConfig, 'profile'>): Promise<AwsClients> {
    const by = JSON.stringify([profile, credentialFilesStamp()]);
    if (this.#clients?.by === by) return this.#clients.loading;
    const loading = import('./client.ts').then((sdk) => new sdk.AwsClients(profile));
    this.#clients = { by, loading };
    return loading;
  }

  #controller(key: string | undefined): Pick<HomeIdentity, 'id'> | undefined {
    return key === undefined ? undefined : this.#files.controllerIdentity(key);
  }

  /** In every region that there may be. */
  async #everywhere<T>(
    doing: string,
    signal: AbortSignal | undefined,
    work: (ec2: Ec2, region: string) => Promise<T>,
  ): Promise<readonly T[]> {
    const [table, config] = await Promise.all([this.#tables.table('aws'), this.#config()]);
    const regions = new Set([...(table === undefined ? [] : regionsOf(table)), ...(config.regions ?? []), mainRegion]);
    return inEveryRegion([...regions], (region) =>
      guard(`${doing} ${region}`, signal, async () => work(await this.#ec2(region, signal), region)),
    );
  }

  async #ec2(region: string, signal: AbortSignal | undefined): Promise<Ec2> {
    return (await this.#sdk(await this.#config())).ec2(region, signal);
  }

  /** Does something in each region at once; throws the first failure when all are through. */
  async #inRegions<T>(
    regions: readonly string[],
    doing: string,
    signal: AbortSignal | undefined,
    work: (ec2: Ec2, region: string) => Promise<T>,
  ): Promise<readonly T[]> {
    const results = await Promise.allSettled(
      regions.map((region) => guard(`${doing} ${region}`, signal, async () => work(await this.#ec2(region, signal), region))),
    );
    return results.map((result) => {
      if (result.status === 'rejected') throw result.reason;
      return result.value;
    });
  }

  #look(
    region: string,
    machines: ReadonlyMap<MachineId, InstanceRef>,
    signal: AbortSignal | undefined,
  ): Promise<ReadonlyMap<MachineId, InstanceSight>> {
    const isBooting = (id: MachineId): boolean => {
      const state = this.#view.lastSight(id, Number.POSITIVE_INFINITY)?.status.state;
      return state === 'booting' || (state === 'running' && !this.#readiness.isReady(id));
    };
    return guard(`show machines in ${region}`, signal, async () => this.#view.look(await this.#ec2(region, signal), machines, isBooting));
  }

  #status(id: MachineId, sight: InstanceSight, { useInternalIps }: AwsConfig): MachineStatus {
    if (sight.status.state !== 'running') return sight.status;
    // AWS says "running" when the processor does; whoever asks wants to log in.
    if (!this.#readiness.isReady(id)) return { state: 'booting' };
    const host = hostOf(sight, useInternalIps);
    const notice = sight.notice ?? (sight.isSpot ? this.#rebalance.noticeOf(id, () => this.#remote(id)) : undefined);
    return { state: 'running', ...(notice !== undefined && { notice }), ...(host !== undefined && { host }) };
  }

  async #logsIn(id: MachineId): Promise<boolean> {
    try {
      await this.#remote(id).connect();
      return true;
    } catch (error) {
      // Until it has the host key that was made for it, it shows another one; until it has a daemon, it shows nothing.
      if (error instanceof SvcError) return false;
      throw error;
    }
  }

  #remote(id: MachineId): SshRemote {
    const ref = existingRef(id);
    const known = this.#remotes.get(id);
    if (known !== undefined) return known;
    const { paths, clock } = this.#context;
    const target = async () => {
      const sight = this.#view.lastSight(id, addressMs) ?? (await this.#look(ref.region, new Map([[id, ref]]), undefined)).get(id);
      if (sight === undefined) throw new SvcError('SVC_MACHINE_LOST', `The machine ${id} is gone.`);
      return sshTarget(ref, sight, this.#files.identity(), (await this.#config()).useInternalIps);
    };
    const remote = new SshRemote({ target, baseDir: machineBaseDir(ref), enter: [], environment: {}, paths, clock });
    this.#remotes.set(id, remote);
    return remote;
  }

  /** Connections to a machine that is gone, and what is known of it, are of no use. */
  async #forgetRemote(id: MachineId): Promise<void> {
    const remote = this.#remotes.get(id);
    this.#remotes.delete(id);
    try {
      await remote?.forget();
    } catch (error) {
      // Its address may not be known any more; then there is no connection either.
      if (!(error instanceof SvcError)) throw error;
    }
  }

  async #instanceProfile(
    clients: AwsClients,
    config: AwsConfig,
    identity: HomeIdentity,
    spec: MachineSpec,
    key: string,
    region: string,
    signal: AbortSignal | undefined,
  ): Promise<string | undefined> {
    if (spec.role !== 'controller') return undefined;
    if (config.controllerRole !== undefined) return config.controllerRole;
    const owner = ownerOf(spec, key);
    this.#files.noteRole(owner);
    return guard('make the role of the controller', signal, () => ensureControllerRole(clients.iam(region, signal), identity.id, owner));
  }
}

function existingRef(id: MachineId): InstanceRef {
  const ref = readMachineId(id);
  if (ref === undefined) throw new SvcError('SVC_MACHINE_LOST', `'${id}' is no machine of AWS.`);
  return ref;
}
