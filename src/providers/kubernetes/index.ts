import { join } from 'node:path';
import { kubernetesContextConfig } from '../../domain/kubernetes/kubernetes-context.ts';
import { mainContainer } from '../../domain/kubernetes/pod-config.ts';
import type { Resources } from '../../domain/task.ts';
import { KubernetesRemote, podCommand } from '../../remote/kubernetes/index.ts';
import type { Remote } from '../../remote/remote.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { SvcError, messageOf } from '../../shared/errors.ts';
import {
  hasTags,
  type CallOptions,
  type ControllerTarget,
  type ListedMachine,
  type MachineId,
  type MachineNode,
  type MachineSpec,
  type MachineStatus,
  type Offer,
  type OfferList,
  type OfferOptions,
  type PortableCredentials,
  type Provider,
  type ProviderCheck,
  type ReadinessReport,
} from '../provider.ts';
import { ProviderRefusal } from '../provider-refusal.ts';
import type { ProviderContext } from '../registry.ts';
import { checkKubernetes } from './check.ts';
import { type KubernetesAccess, KubernetesClusters, usualAccess } from './kubernetes-clusters.ts';
import { createMachine, type Creation } from './create.ts';
import { removeMachine, removeOwned } from './destroy.ts';
import { MachineStates } from './machine-states.ts';
import { type MachineRef, firstPod, machineIdOf, ownerOf, podBase, podNames, readMachineId, sharedTags } from './names.ts';
import { type OfferingContext, kubernetesOffers } from './offers.ts';
import { forTask } from './pod-settings.ts';
import { DryRuns } from './dry-runs.ts';
import { ReadinessReporter } from './readiness.ts';
import { NamespaceInventory } from './namespace-inventory.ts';
import { portableKubeconfig } from '../../kubernetes/portable-kubeconfig.ts';

/** ms. A search for offers leaves out Kubernetes clusters that have not answered by then. */
const offersMs = 8_000;
/** Part of the name of a dry run's pod, which is never created. */
const dryRunKey = 'rehearsal';

const late = (): Error => new SvcError('SVC_KUBERNETES', `it has not answered within ${offersMs / 1_000} s`);

/** A context is a region. A machine is one pod, or several that start together. */
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
  readonly #clusters: KubernetesClusters;
  readonly #namespaces: NamespaceInventory;
  readonly #states: MachineStates;
  readonly #dryRuns = new DryRuns();
  readonly #readiness: ReadinessReporter;

  constructor(context: ProviderContext, access: KubernetesAccess = usualAccess(context)) {
    this.#context = context;
    this.#clusters = new KubernetesClusters(context, access);
    this.#namespaces = new NamespaceInventory(context, this.#clusters);
    this.#states = new MachineStates(context.clock, this.#clusters, this.#namespaces);
    this.#readiness = new ReadinessReporter(context.clock, this.#clusters);
  }

  async check({ signal }: CallOptions): Promise<ProviderCheck> {
    signal?.throwIfAborted();
    return checkKubernetes(this.#clusters, this.#namespaces.list().length > 0, this.#context.clock, signal);
  }

  async offers(resources: Resources, { signal, explain = false, providerConfig }: OfferOptions): Promise<OfferList> {
    signal?.throwIfAborted();
    const known = await this.#clusters.known(resources.region);
    const asked = known.usable.filter((name) => resources.region === undefined || resources.region === name);
    const clusters = await Promise.all(asked.map((name) => this.#offering(name, signal)));
    signal?.throwIfAborted();
    const ofTask = clusters.map((cluster) => ({ ...cluster, config: forTask(cluster.config, providerConfig) }));
    return kubernetesOffers(resources, known, ofTask, explain);
  }

  /** A context that does not answer now causes an error that is not a refusal: `offers` leaves such contexts out. */
  async preflight(offer: Offer, spec: MachineSpec, { signal }: CallOptions): Promise<void> {
    await this.#dryRuns.everything(await this.#creation(offer, spec, dryRunKey, signal));
  }

  async create(offer: Offer, spec: MachineSpec, key: string, { signal }: CallOptions): Promise<MachineId> {
    const creation = await this.#creation(offer, spec, key, signal);
    const id = machineIdOf(creation.ref);
    const { context, namespace } = creation.ref;
    this.#namespaces.record({ context, namespace, tags: intentTags(spec.tags) });
    this.#states.made(id);
    await createMachine(creation, (plan, name) => this.#dryRuns.once(creation, plan, name));
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
    // Closes this process's connections, such as port-forwards: none may outlive its pod.
    for (const name of podNames(ref.base)) await this.#remote(ref, name).close();
    this.#states.removed(id, isGone);
  }

  /** Throws when a Kubernetes cluster that may have such a machine cannot be asked: the list would be incomplete. */
  async list(tags: Readonly<Record<string, string>>, { signal }: CallOptions): Promise<readonly ListedMachine[]> {
    signal?.throwIfAborted();
    const found = await this.#namespaces.inAllNamespaces(tags, signal, async ({ context, namespace }, inner) =>
      (await this.#clusters.cluster(context)).machines(namespace, tags, inner),
    );
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
    this.#clusters.watches.listen(onChange, signal, this.#namespaces.list());
  }

  watchQuota(region: string, onFreed: () => void, signal: AbortSignal): void {
    const listen = async (): Promise<void> => {
      const namespace = await this.#clusters.namespaceOf(region);
      this.#clusters.quotas.listen({ context: region, namespace }, onFreed, signal);
    };
    // Until the Kubernetes cluster can be opened, only the backoff ends its refusals.
    listen().catch(() => undefined);
  }

  async release(ownerKey: string, { signal }: CallOptions): Promise<void> {
    signal?.throwIfAborted();
    await this.#namespaces.inAllNamespaces({ 'svc-service-key': ownerKey }, signal, async ({ context, namespace }, inner) =>
      removeOwned(await this.#clusters.cluster(context), namespace, ownerKey, inner),
    );
    this.#namespaces.forget(ownerKey);
  }

  /** For a controller in a Kubernetes cluster, the launcher provides the credentials. */
  async credentials(target: ControllerTarget, { signal }: CallOptions): Promise<PortableCredentials | undefined> {
    signal?.throwIfAborted();
    return target.provider === this.name ? undefined : portableLogin(this.#clusters, this.#namespaces, target);
  }

  async reportReadiness(report: ReadinessReport, { signal }: CallOptions): Promise<void> {
    signal?.throwIfAborted();
    await this.#readiness.report(report, signal);
  }

  async #creation(offer: Offer, spec: MachineSpec, key: string, signal: AbortSignal | undefined): Promise<Creation> {
    signal?.throwIfAborted();
    const { region: context } = offer;
    if (!this.#clusters.contexts().has(context))
      throw new ProviderRefusal('unsupported', 'whole-region', `The kubeconfig has no context '${context}' any more.`);
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

  async #offering(context: string, signal: AbortSignal | undefined): Promise<OfferingContext> {
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

/** The tags that all of an owner's machines have; without an owner, all tags of the machine. */
function intentTags(tags: MachineSpec['tags']): Readonly<Record<string, string>> {
  return ownerOf(tags) === undefined ? tags : sharedTags(tags);
}

/** Path below a remote controller's home. */
const kubeconfigFile = 'kubernetes/kubeconfig';

/** Undefined when no context is usable. */
async function portableLogin(
  clusters: KubernetesClusters,
  namespaces: NamespaceInventory,
  { key, home }: Pick<ControllerTarget, 'key' | 'home'>,
): Promise<PortableCredentials | undefined> {
  const { usable } = await clusters.known();
  if (usable.length === 0) return undefined;
  const { text, contexts, leftOut } = portableKubeconfig(usable);
  // If that controller is lost, this home must find its machines.
  if (key !== undefined)
    for (const context of contexts) {
      const namespace = (await clusters.configOf(context)).namespace ?? clusters.contexts().cluster(context).namespace;
      namespaces.record({ context, namespace, tags: { 'svc-owner': key } });
    }
  const without = leftOut.map(({ context, reason }) => `${context}: ${reason}`).join('; ');
  if (text === undefined) return { summary: `no context of your kubeconfig (${without})`, files: [], environment: {} };
  return {
    summary: `your login to ${contexts.join(', ')}${without === '' ? '' : `; without ${without}`}`,
    files: [{ path: kubeconfigFile, content: text }],
    environment: { KUBECONFIG: join(home, kubeconfigFile) },
  };
}
