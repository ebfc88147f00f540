import { describe } from 'vitest';
import { whyNoKubernetes, type ClusterKind } from '../testbed/kubernetes/needs.ts';
import { prepareTestbed } from '../testbed/kubernetes/prepare.ts';
import { startCluster, type ClusterOptions, type TestCluster } from '../testbed/kubernetes/test-cluster.ts';

export { imageOfFolder } from '../testbed/kubernetes/image-folder.ts';
export type { AuditEvent } from '../testbed/kubernetes/audit-log.ts';
export type { PodView } from '../testbed/kubernetes/cluster-api.ts';
export type { ClusterOptions, TestCluster } from '../testbed/kubernetes/test-cluster.ts';

/** An image with bash, Python and Node that all nodes have preloaded. */
export const debianImage = 'svc-test/debian:1';
/** A small preloaded image: a shell, and `/serve.sh`, which answers over HTTP at $PORT (8080) with the pod's name. */
export const busyboxImage = 'svc-test/busybox:1';

/** Starts a Kubernetes cluster: about 5 s, and 5 more with nodes. The caller must release it. */
export async function startKubernetes(options: ClusterOptions = {}): Promise<TestCluster> {
  return startCluster(await prepareTestbed(), options);
}

/** Runs `use` with a cluster and always releases it. */
export async function withKubernetes<Result>(options: ClusterOptions, use: (cluster: TestCluster) => Promise<Result>): Promise<Result> {
  const cluster = await startKubernetes(options);
  try {
    return await use(cluster);
  } finally {
    await cluster.release();
  }
}

/** Groups tests that need clusters of that kind. Skipped by name and with the reason where these cannot run. */
export function describeKubernetes(kind: ClusterKind, name: string, tests: () => void): void {
  const reason = whyNoKubernetes(kind);
  describe.skipIf(reason !== undefined)(`${name}${reason === undefined ? '' : ` (left out: ${reason})`}`, () => {
    tests();
  });
}
