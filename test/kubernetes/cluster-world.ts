import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { debianImage, startKubernetes, type ClusterOptions, type TestCluster } from '../support/kubernetes.ts';
import { withSvc, type Svc } from '../support/e2e.ts';
import { waitFor } from '../support/wait-for.ts';
import { writeWebService } from '../support/web-service.ts';

/** Kubernetes clusters, and a home that uses them as contexts. */
export interface KubernetesWorld {
  readonly svc: Svc;
  readonly clusters: readonly TestCluster[];
}

/** Returns the kubeconfig of a user. By default the admin's; tests can use the documented role instead. */
export type UserOf = (cluster: TestCluster) => Promise<string>;

/**
 * Runs `use` with new clusters and a home that uses all of them. Afterwards it removes everything, even after a
 * failure.
 */
export async function withKubernetesClusters(
  options: readonly (ClusterOptions & { readonly name: string })[],
  use: (world: KubernetesWorld) => Promise<void>,
  { config = '', user = async ({ kubeconfig }) => kubeconfig }: { readonly config?: string; readonly user?: UserOf } = {},
): Promise<void> {
  const clusters: TestCluster[] = [];
  try {
    for (const one of options) clusters.push(await startKubernetes(one));
    const kubeconfigs = await Promise.all(clusters.map(user));
    await withSvc(
      async (svc) => {
        const names = clusters.map(({ context }) => context).join(', ');
        writeFileSync(join(svc.home, 'config.yaml'), `kubernetes:\n  allowed_contexts: [${names}]\n  image: ${debianImage}\n${config}`);
        await use({ svc, clusters });
      },
      { env: { KUBECONFIG: kubeconfigs.join(':') } },
    );
  } finally {
    await Promise.all(clusters.map((cluster) => cluster.release()));
  }
}

/**
 * Writes a service whose replicas answer with `replica ID`, after 20 ms and from a file of its working directory.
 * Returns the path of its file.
 */
export function webFiles(svc: Svc, replicas: number, resources: readonly string[], service: readonly string[] = []): string {
  return writeWebService(svc, { replicas, resources, service, answerMs: 20 });
}

interface Listed {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Readonly<Record<string, string>> };
}

/** Lists svc's objects in a cluster, of every namespace and kind, except for the cluster's own history (its events). */
async function objectsOfOurs(cluster: TestCluster): Promise<readonly string[]> {
  const kinds = (await cluster.kubectl('api-resources', '--verbs=list', '-o', 'name'))
    .trim()
    .split('\n')
    .filter((kind) => !kind.startsWith('events'));
  const found = await Promise.all(
    kinds.map(async (kind) => {
      const { items }: { readonly items: readonly Listed[] } = JSON.parse(
        await cluster.kubectl('get', kind, '--all-namespaces', '-o', 'json'),
      );
      const ours = items.filter(({ metadata: { name, labels = {} } }) => {
        return name.startsWith('svc-') || Object.keys(labels).some((label) => label.startsWith('svc-'));
      });
      return ours.map(({ metadata: { name, namespace } }) => `${kind} ${namespace ?? ''}/${name}`);
    }),
  );
  return found.flat();
}

/**
 * Fails when svc's objects stay in a cluster, or a packet for one was about to leave this computer. The cluster removes
 * owned objects a while after their owner. `isOurs` decides which objects with svc's names count.
 */
export async function nothingLeft(clusters: readonly TestCluster[], isOurs: (object: string) => boolean = () => true): Promise<void> {
  for (const cluster of clusters) {
    let left: readonly string[] = [];
    const isGone = async (): Promise<boolean> => {
      left = (await objectsOfOurs(cluster)).filter(isOurs);
      return left.length === 0;
    };
    await waitFor('nothing to be left', isGone, { everyMs: 1_000, describe: () => left });
    expect(await cluster.leakedPackets()).toBe(0);
  }
}
