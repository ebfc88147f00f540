import { kubernetesContextConfig, usableContexts } from '../../domain/kubernetes-context.ts';
import type { KubernetesConfig, KubernetesContextConfig } from '../../domain/config.ts';
import { kubeContexts, openKubeApi, type KubeContexts } from '../../kubernetes/contexts.ts';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import type { ProviderContext } from '../registry.ts';
import { Cluster } from './cluster.ts';
import type { KnownContexts } from './offers.ts';
import { PodWatches } from './pod-watches.ts';

/** How the API of a context is opened, and which contexts there are: what a test may replace. */
export interface ClusterAccess {
  readonly contexts: () => KubeContexts;
  readonly open: (context: string) => Promise<KubeApi>;
}

/** The user's own kubeconfig. */
export function usualAccess({ fence, clock, random }: ProviderContext): ClusterAccess {
  return {
    contexts: () => kubeContexts(),
    open: (context) => Promise.resolve().then(() => openKubeApi(context, { fence, clock, random })),
  };
}

/** The contexts of the kubeconfig and what the configuration says of them; each cluster opened once. */
export class Clusters {
  readonly watches: PodWatches;
  readonly #context: ProviderContext;
  readonly #access: ClusterAccess;
  readonly #open = new Map<string, Promise<Cluster>>();
  /** As it was read last, for those who cannot wait. */
  #config: KubernetesConfig | undefined;

  constructor(context: ProviderContext, access: ClusterAccess) {
    this.#context = context;
    this.#access = access;
    this.watches = new PodWatches(context, (name) => this.api(name));
    void this.config().catch(() => undefined);
  }

  async config(): Promise<KubernetesConfig> {
    this.#config = (await this.#context.config()).kubernetes;
    return this.#config;
  }

  /** What is said of one context. */
  async configOf(name: string): Promise<KubernetesContextConfig> {
    return kubernetesContextConfig(await this.config(), name);
  }

  /** The same as it was read last. */
  lastConfigOf(name: string): KubernetesContextConfig | undefined {
    return this.#config && kubernetesContextConfig(this.#config, name);
  }

  contexts(): KubeContexts {
    return this.#access.contexts();
  }

  /** Which there are and may be used; `named` by who asks. */
  async known(named?: string): Promise<KnownContexts & { readonly usable: readonly string[] }> {
    const contexts = this.contexts();
    return { names: contexts.names, usable: usableContexts(await this.config(), contexts, named) };
  }

  async api(name: string): Promise<KubeApi> {
    return (await this.cluster(name)).api;
  }

  /** Throws SVC_CREDENTIALS when the kubeconfig has no such context. */
  async cluster(name: string): Promise<Cluster> {
    const known = this.#open.get(name);
    if (known !== undefined) return known;
    const opening = this.#access.open(name).then((api) => new Cluster(api, this.#context.clock, this.watches));
    this.#open.set(name, opening);
    try {
      return await opening;
    } catch (error) {
      this.#open.delete(name);
      throw error;
    }
  }

  /** Where machines of a context go. */
  async namespaceOf(name: string): Promise<string> {
    return (await this.configOf(name)).namespace ?? (await this.api(name)).namespace;
  }
}
