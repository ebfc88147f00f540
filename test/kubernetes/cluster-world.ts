import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { debianImage, startKubernetes, type ClusterOptions, type TestCluster } from '../support/kubernetes.ts';
import { withSvc, type Svc } from '../support/e2e.ts';
import { waitFor } from '../support/wait-for.ts';
import { writeWebService } from '../support/web-service.ts';

/** Clusters, and a home whose places they are. */
export interface ClusterWorld {
  readonly svc: Svc;
  readonly clusters: readonly TestCluster[];
}

/** The role that the project writes for its users, so that tests do with it. */
export type UserOf = (cluster: TestCluster) => Promise<string>;

/** Runs `use` with clusters of its own and a home that uses all of them. Whatever becomes of it, nothing is left. */
export async function withClusters(
  options: readonly (ClusterOptions & { readonly name: string })[],
  use: (world: ClusterWorld) => Promise<void>,
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

/** Writes a service whose replicas answer with `replica ID`, after 20 ms and from a file of its working directory; gives the path of its file. */
export function webFiles(svc: Svc, replicas: number, resources: readonly string[], service: readonly string[] = []): string {
  return writeWebService(svc, { replicas, resources, service, answerMs: 20 });
}

interface Listed {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Readonly<Record<string, string>> };
}

/** What of ours is in a cluster, in any namespace and of any kind, but for what the cluster itself remembers of the past (its events). */
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
 * Fails when anything of ours stays in a cluster, or a packet for one was about to leave this computer. What goes with its owner is removed by the cluster, a
 * while after the owner. `isOurs`: which of what is called like ours is.
 */
export async function nothingLeft(clusters: readonly TestCluster[], isOurs: (object: string) => boolean = () => true): Promise<void> {
  for (const cluster of clusters) {
    let left: readonly string[] = [];
    const isGone = async (): Promise<boolean> => {
      left = (await objectsOfOurs(cluster)).filter(isOurs);
      return left.length === 0;
    };
    await waitFor('nothing to be left', isGone, { timeoutMs: 60_000, everyMs: 1_000, describe: () => left });
    expect(await cluster.leakedPackets()).toBe(0);
  }
}
