import { kubernetesContextConfig } from '../../domain/kubernetes-context.ts';
import { mainContainer } from '../../domain/pod-config.ts';
import type { Resources } from '../../domain/task.ts';
import { KubernetesRemote, podCommand } from '../../remote/kubernetes/index.ts';
import type { Remote } from '../../remote/remote.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import { hasTags } from '../has-tags.ts';
import { PlaceRefusal } from '../place-refusal.ts';
import type {
  CallOptions,
  ControllerTarget,
  ListedMachine,
  MachineId,
  MachineNode,
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
import { checkKubernetes } from './check.ts';
import { Clusters, usualAccess, type ClusterAccess } from './clusters.ts';
import { createMachine } from './create.ts';
import type { Creation } from './creation.ts';
import { portableLogin } from './credentials.ts';
import { removeMachine, removeOwned } from './destroy.ts';
import { listMachines } from './list.ts';
import { MachineStates } from './machine-states.ts';
import { firstPod, machineIdOf, ownerOf, podBase, podNames, readMachineId, sharedTags, type MachineRef } from './names.ts';
import { kubernetesOffers, type OfferingCluster } from './offers.ts';
import { forTask } from './pod-settings.ts';
import { Rehearsals } from './rehearsals.ts';
import { Whereabouts } from './whereabouts.ts';

/** Offers are wanted soon: a cluster that has not answered by then, ms, is left out of this search. */
const offersMs = 8_000;
/** In the name of a pod that is only shown: none is ever made of it. */
const rehearsalKey = 'rehearsal';

const late = (): Error => new SvcError('SVC_KUBERNETES', `it has not answered within ${offersMs / 1_000} s`);

/** Clusters of Kubernetes: a context is a region, and a machine a pod, or a group of pods that start together. */
export class KubernetesProvider implements Provider {
  readonly name = 'kubernetes';
  readonly capabilities = {
    spot: true,
    stopResume: false,
    customImages: true,
    openPorts: true,
    multiNode: true,
    gpus: true,
    mountsAnywhere: true,
  };
  readonly #context: ProviderContext;
  readonly #clusters: Clusters;
  readonly #whereabouts: Whereabouts;
  readonly #states: MachineStates;
  readonly #rehearsals = new Rehearsals();

  constructor(context: ProviderContext, access: ClusterAccess = usualAccess(context)) {
    this.#context = context;
    this.#clusters = new Clusters(context, access);
    this.#whereabouts = new Whereabouts(context, this.#clusters);
    this.#states = new MachineStates(context.clock, this.#clusters, this.#whereabouts);
  }

  async check({ signal }: CallOptions): Promise<ProviderCheck> {
    signal?.throwIfAborted();
    return checkKubernetes(this.#clusters, this.#whereabouts.notes.list().length > 0, this.#context.clock, signal);
  }

  async offers(resources: Resources, { signal, explain = false, placeConfig }: OfferOptions): Promise<OfferList> {
    signal?.throwIfAborted();
    const known = await this.#clusters.known(resources.region);
    const asked = known.usable.filter((name) => resources.region === undefined || resources.region === name);
    const clusters = await Promise.all(asked.map((name) => this.#offering(name, signal)));
    signal?.throwIfAborted();
    const ofTask = clusters.map((cluster) => ({ ...cluster, config: forTask(cluster.config, placeConfig) }));
    return kubernetesOffers(resources, known, ofTask, explain);
  }

  /** `offers` left out clusters that do not answer; one that does not answer now says so by an error that is no refusal. */
  async rehearse(offer: Offer, spec: MachineSpec, { signal }: CallOptions): Promise<void> {
    await this.#rehearsals.everything(await this.#creation(offer, spec, rehearsalKey, signal));
  }

  async create(offer: Offer, spec: MachineSpec, key: string, { signal }: CallOptions): Promise<MachineId> {
    const creation = await this.#creation(offer, spec, key, signal);
    const id = machineIdOf(creation.ref);
    const { context, namespace } = creation.ref;
    this.#whereabouts.note({ context, namespace, tags: notedTags(spec.tags) });
    this.#states.made(id);
    await createMachine(creation, this.#rehearsals);
    return id;
  }

  async inspect(ids: readonly MachineId[], { signal }: CallOptions): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    return this.#states.of(ids, signal);
  }

  async destroy(id: MachineId, { signal }: CallOptions): Promise<void> {
    const ref = readMachineId(id);
    if (ref === undefined) return;
    signal?.throwIfAborted();
    const cluster = await this.#clusters.cluster(ref.context);
    const isGone = await removeMachine(cluster, ref, this.#context.clock, signal);
    // What is kept for them here, so that nothing of ours goes on for a pod that is gone.
    for (const name of podNames(ref.base)) await this.#remote(ref, name).close();
    this.#states.removed(id, isGone);
  }

  /**
   * What clusters have in which this home made something, or may. Throws when one cannot be asked that may have a machine with these tags: nobody must
   * take that for "there is none".
   */
  async list(tags: Readonly<Record<string, string>>, { signal }: CallOptions): Promise<readonly ListedMachine[]> {
    signal?.throwIfAborted();
    const found = await this.#whereabouts.everywhere(tags, signal, async ({ context, namespace }, inner) => {
      const cluster = await this.#clusters.cluster(context);
      return listMachines(cluster, namespace, tags, inner);
    });
    return found.flat().filter(({ id, tags: own }) => hasTags(own, tags) && !this.#states.wasRemoved(id));
  }

  remote(id: MachineId): Remote {
    const ref = readMachineId(id);
    if (ref === undefined) throw new SvcError('SVC_MACHINE_LOST', `There is no machine ${id}.`);
    return this.#remote(ref, firstPod(ref.base));
  }

  async nodes(id: MachineId, { signal }: CallOptions): Promise<readonly MachineNode[]> {
    const ref = readMachineId(id);
    if (ref === undefined) return [];
    const cluster = await this.#clusters.cluster(ref.context);
    const pods = (await cluster.pods(ref.namespace, [ref.base], signal)).get(ref.base) ?? [];
    const byName = new Map(pods.map((pod) => [pod.metadata.name, pod]));
    return podNames(ref.base).map((name, rank): MachineNode => {
      const ip = byName.get(name)?.status?.podIP;
      if (ip === undefined) throw new SvcError('SVC_MACHINE_LOST', `The pod ${ref.namespace}/${name} of ${ref.context} does not run.`);
      return { rank, ip, remote: this.#remote(ref, name) };
    });
  }

  watch(onChange: () => void, signal: AbortSignal): void {
    this.#clusters.watches.listen(onChange, signal, this.#whereabouts.notes.list());
  }

  stop(): Promise<void> {
    return Promise.reject(new SvcError('SVC_NOT_SUPPORTED', 'Pods cannot be stopped and started again.'));
  }

  start(): Promise<void> {
    return this.stop();
  }

  async release(ownerKey: string, { signal }: CallOptions): Promise<void> {
    signal?.throwIfAborted();
    await this.#whereabouts.everywhere({ 'svc-service-key': ownerKey }, signal, async ({ context, namespace }, inner) =>
      removeOwned(await this.#clusters.cluster(context), namespace, ownerKey, inner),
    );
    this.#whereabouts.forget(ownerKey);
  }

  /** For a controller in a cluster whoever makes it sees to that. */
  async credentials(target: ControllerTarget, { signal }: CallOptions): Promise<PortableCredentials | undefined> {
    signal?.throwIfAborted();
    return target.provider === this.name ? undefined : portableLogin(this.#clusters, this.#whereabouts.notes, target);
  }

  async #creation(offer: Offer, spec: MachineSpec, key: string, signal: AbortSignal | undefined): Promise<Creation> {
    signal?.throwIfAborted();
    const { region: context } = offer;
    if (!this.#clusters.contexts().has(context))
      throw new PlaceRefusal('unsupported', 'whole-region', `The kubeconfig has no context '${context}' any more.`);
    const [cluster, config, namespace] = await Promise.all([
      this.#clusters.cluster(context),
      this.#clusters.configOf(context),
      this.#clusters.namespaceOf(context),
    ]);
    const ref: MachineRef = { context, namespace, base: podBase(spec.tags, key, spec.nodes) };
    return { cluster, config, offer, spec, ref, command: podCommand(), clock: this.#context.clock, signal };
  }

  #remote({ context, namespace }: MachineRef, name: string): KubernetesRemote {
    const { paths, clock } = this.#context;
    return new KubernetesRemote({
      api: () => this.#clusters.api(context),
      context,
      pod: { namespace, name, container: mainContainer },
      environment: {},
      reach: this.#clusters.lastConfigOf(context)?.reach ?? 'auto',
      paths,
      clock,
    });
  }

  async #offering(context: string, signal: AbortSignal | undefined): Promise<OfferingCluster> {
    const config = kubernetesContextConfig(await this.#clusters.config(), context);
    try {
      const survey = async (inner: AbortSignal) => (await this.#clusters.cluster(context)).survey(inner);
      return { context, config, state: await withDeadline(this.#context.clock, offersMs, survey, late, signal) };
    } catch (error) {
      signal?.throwIfAborted();
      return { context, config, state: { why: messageOf(error).replace(/\.$/, '') } };
    }
  }
}

/** What all of an owner's machines have; of a machine by itself, all. */
function notedTags(tags: MachineSpec['tags']): Readonly<Record<string, string>> {
  return ownerOf(tags) === undefined ? tags : sharedTags(tags);
}
