import { defaultConfig, type KubernetesConfig } from '../../src/domain/config.ts';
import { kubeContexts, openKubeApi } from '../../src/kubernetes/contexts.ts';
import type { KubeApi } from '../../src/kubernetes/kube-api.ts';
import { KubernetesProvider } from '../../src/providers/kubernetes/index.ts';
import { clusterReadRules, foresightRules, replicaRules } from '../../src/domain/kubernetes/kubernetes-role.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { noFence } from '../../src/shared/fence.ts';
import { homePaths } from '../../src/shared/paths.ts';
import { systemRandom } from '../../src/shared/random.ts';
import { busyboxImage, type TestCluster } from './kubernetes.ts';

/** Options with which a test opens Kubernetes clusters as a provider. */
export interface KubernetesProviderOptions {
  /** Files; the first one names the current context. */
  readonly kubeconfigs: readonly string[];
  readonly home: string;
  readonly config?: Partial<KubernetesConfig>;
}

/** Opens the clusters as a process whose kubeconfig has those contexts. Replicas have busybox. */
export function openKubernetesProvider({ kubeconfigs, home, config = {} }: KubernetesProviderOptions): KubernetesProvider {
  const kubernetes: KubernetesConfig = { ...defaultConfig.kubernetes, image: busyboxImage, ...config };
  const context = {
    paths: homePaths(home, 0),
    clock: systemClock,
    random: systemRandom,
    config: () => Promise.resolve({ ...defaultConfig, kubernetes }),
    sshPools: () => Promise.resolve([]),
    fence: noFence,
  };
  const source = { files: kubeconfigs, pod: undefined };
  return new KubernetesProvider(context, {
    contexts: () => kubeContexts(source),
    open: (name) => Promise.resolve().then(() => openKubeApi(name, { ...context, source })),
  });
}

/** Opens a cluster's API as the program does, for the user of a kubeconfig; default: the admin. */
export function openTestKubeApi(cluster: TestCluster, kubeconfig = cluster.kubeconfig): KubeApi {
  const source = { files: [kubeconfig], pod: undefined };
  return openKubeApi(cluster.context, { fence: noFence, clock: systemClock, random: systemRandom, source });
}

/** Adds a user with exactly the documented roles in a namespace; returns a kubeconfig. */
export function addReplicaUser(cluster: TestCluster, namespace = 'default', withClusterRole = true): Promise<string> {
  return cluster.addUser(`svc-${namespace}`, {
    namespace,
    rules: [...replicaRules, ...foresightRules],
    ...(withClusterRole && { clusterRules: clusterReadRules }),
  });
}
