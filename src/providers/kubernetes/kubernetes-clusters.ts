import { kubernetesContextConfig, usableContexts } from '../../domain/kubernetes/kubernetes-context.ts';
import type { KubernetesConfig, KubernetesContextConfig } from '../../domain/config.ts';
import { kubeContexts, openKubeApi, type KubeContexts } from '../../kubernetes/contexts.ts';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import type { ProviderContext } from '../registry.ts';
import { KubernetesCluster } from './kubernetes-cluster.ts';
import type { KnownContexts } from './offers.ts';
import { PodWatches } from './pod-watches.ts';
import { QuotaWatches } from './quota-watches.ts';

/** Opens the API of a context. A test may replace it. */
export interface KubernetesAccess {
  readonly contexts: () => KubeContexts;
  readonly open: (context: string) => Promise<KubeApi>;
}

/** The user's own kubeconfig. */
export function usualAccess({ fence, clock, random }: ProviderContext): KubernetesAccess {
  return {
    contexts: () => kubeContexts(),
    open: (context) => Promise.resolve().then(() => openKubeApi(context, { fence, clock, random })),
  };
}

/** The kubeconfig's contexts with their configuration. Each API is opened once. */
export class KubernetesClusters {
  readonly watches: PodWatches;
  readonly quotas: QuotaWatches;
  readonly #context: ProviderContext;
  readonly #access: KubernetesAccess;
  readonly #open = new Map<string, Promise<KubernetesCluster>>();
  /** As last read, for callers that cannot wait. */
  #config: KubernetesConfig | undefined;

  constructor(context: ProviderContext, access: KubernetesAccess) {
    this.#context = context;
    this.#access = access;
    this.watches = new PodWatches(context, (name) => this.api(name));
    this.quotas = new QuotaWatches(context, (name) => this.api(name));
    void this.config().catch(() => undefined);
  }

  async config(): Promise<KubernetesConfig> {
    this.#config = (await this.#context.config()).kubernetes;
    return this.#config;
  }

  async configOf(name: string): Promise<KubernetesContextConfig> {
    return kubernetesContextConfig(await this.config(), name);
  }

  lastConfigOf(name: string): KubernetesContextConfig | undefined {
    return this.#config && kubernetesContextConfig(this.#config, name);
  }

  contexts(): KubeContexts {
    return this.#access.contexts();
  }

  /** `named`: the context in the request. */
  async known(named?: string): Promise<KnownContexts & { readonly usable: readonly string[] }> {
    const contexts = this.contexts();
    return { names: contexts.names, usable: usableContexts(await this.config(), contexts, named) };
  }

  async api(name: string): Promise<KubeApi> {
    return (await this.cluster(name)).api;
  }

  /** Throws SVC_CREDENTIALS when the kubeconfig has no such context. */
  async cluster(name: string): Promise<KubernetesCluster> {
    const known = this.#open.get(name);
    if (known !== undefined) return known;
    const opening = this.#access.open(name).then((api) => new KubernetesCluster(api, this.#context.clock, this.watches));
    this.#open.set(name, opening);
    try {
      return await opening;
    } catch (error) {
      this.#open.delete(name);
      throw error;
    }
  }

  async namespaceOf(name: string): Promise<string> {
    return (await this.configOf(name)).namespace ?? (await this.api(name)).namespace;
  }
}
